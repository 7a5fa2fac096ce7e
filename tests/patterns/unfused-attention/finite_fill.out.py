# at: scores.masked_fill_(
# line: scores = q.matmul(k.mT) / 8.0
# fix: unsafe
import torch


def attention(q, k, v, pad):
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=~pad[:, None, None, :], scale=1.0 / 8.0
    )
