# at: attn = torch.softmax(scores, -1)
import torch


def attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2))
    q = torch.relu(q)
    attn = torch.softmax(scores, -1)
    return torch.bmm(attn, v) + q
