# at: return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
# evidence: reason five dimensions
import torch.nn.functional as F


def attend(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
