# at: return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
# confirmed: no
import torch
import torch.nn.functional as F


def attend(q, k, v, lengths):
    mask = torch.arange(k.shape[2])[None] < lengths[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
