# at: return F.scaled_dot_product_attention(q, k, v, attn_mask=same)
# confirmed: no
import torch
import torch.nn.functional as F


def packed(q, k, v, lengths):
    heads = torch.arange(q.shape[-1] // 2)
    document = torch.cumsum(lengths, 0)[heads.numel() :].argsort()
    same = document[:, None] == document[None, :]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=same)
