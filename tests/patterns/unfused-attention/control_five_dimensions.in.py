# at: dot_prod = torch.einsum("B G H I D, B G H J D -> B G H I J", q, k)
import torch
import torch.nn.functional as F


def windows(q, k, v):
    dot_prod = torch.einsum("B G H I D, B G H J D -> B G H I J", q, k)
    dot_prod = F.softmax(dot_prod, dim=-1)
    return torch.einsum("B G H I J, B G H J D -> B G H I D", dot_prod, v)
