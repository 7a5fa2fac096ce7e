# at: dots = torch.einsum("bqhd,bkhd->bhqk", q, k)
import torch


def attention(q, k, v, heads):
    scale = q.shape[-1] ** -0.5
    dots = torch.einsum("bqhd,bkhd->bhqk", q, k)
    probs = (dots * scale).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", probs, v).flatten(2)


def run():
    torch.manual_seed(0)
    return attention(*torch.randn(3, 2, 5, 3, 4), heads=3)
