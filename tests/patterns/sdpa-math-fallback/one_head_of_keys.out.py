# at: return F.scaled_dot_product_attention(q, k, v, is_causal=True)
# evidence: reason fewer heads of keys than of queries
# torch: 2.6
import torch
import torch.nn.functional as F


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def run():
    torch.manual_seed(0)
    return attend(torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8), torch.randn(2, 1, 5, 8))
