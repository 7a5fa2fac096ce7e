# at: x = F.scaled_dot_product_attention(q, k, v)
# confirmed: no
import torch.nn.functional as F


def attention(q, k, v):
    x = F.scaled_dot_product_attention(q, k, v)
    return x
