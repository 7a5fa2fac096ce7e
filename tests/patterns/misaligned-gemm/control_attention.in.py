# at: q @ k.transpose
import torch


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    return torch.softmax(scores, -1) @ v
