# at: dots = torch.einsum("bqhd,bkhd->bhqk", q, k)
import torch


def attention(q, k, v, heads):
    scale = q.shape[-1] ** -0.5
    return torch.nn.functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=scale
    ).transpose(1, 2).flatten(2)


def run():
    torch.manual_seed(0)
    return attention(*torch.randn(3, 2, 5, 3, 4), heads=3)
