# at: q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
# confirmed: no
import torch.nn.functional as F


def attend(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    return F.scaled_dot_product_attention(q, k, v)
