# at: scores.masked_fill_(
# line: scores = q.matmul(k.mT) / 8.0
import torch


def attention(q, k, v, pad):
    scores = q.matmul(k.mT) / 8.0
    scores.masked_fill_(
        pad[:, None, None, :],  # (batch, 1, 1, keys)
        -1e9)
    scores = scores.softmax(-1)
    return scores.matmul((yield))
