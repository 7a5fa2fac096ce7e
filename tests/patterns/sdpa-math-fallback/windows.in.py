# at: out = scaled_dot_product_attention(
# evidence: reason five dimensions
import torch
from torch.nn.functional import scaled_dot_product_attention


def attend_in_windows(q, k, v):
    """(images, windows, heads, tokens, width)"""
    out = scaled_dot_product_attention(
        q,
        k,
        value=v,  # not scaled
    )
    return out.transpose(2, 3).flatten(3)


def run():
    torch.manual_seed(0)
    return attend_in_windows(*(torch.randn(2, 3, 4, 9, 8) for _ in range(3)))
