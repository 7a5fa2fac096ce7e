# at: return F.scaled_dot_product_attention(q, k, v)
# evidence: reason fewer heads of keys than of queries
# torch: 2.4
import torch.nn.functional as F


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
