# at: return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
# confirmed: no
import torch
import torch.nn.functional as F


def attend(q, k, v):
    n = q.shape[2]
    mask = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
