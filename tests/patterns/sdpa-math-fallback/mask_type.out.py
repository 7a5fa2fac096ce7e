# at: out = F.scaled_dot_product_attention(q, k, v, mask)
# evidence: reason a mask of another type
import torch
import torch.nn.functional as F


def attend(q, k, v, mask):
    out = F.scaled_dot_product_attention(q, k, v, mask.to(q.dtype))
    return out


def run():
    torch.manual_seed(0)
    return attend(*(torch.randn(2, 2, 5, 8) for _ in range(3)), torch.randn(5, 5))
