# at: k = k.transpose(-1, -2).contiguous()
# confirmed: no
import torch.nn.functional as F


def attend(q, k, v):
    """Keys come with tokens last: the fused kernels need the copy."""
    k = k.transpose(-1, -2).contiguous()
    return F.scaled_dot_product_attention(q, k, v)
