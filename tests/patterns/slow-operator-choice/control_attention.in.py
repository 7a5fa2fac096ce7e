# at: return torch.einsum("bihd,bjhd->bhij", q, k)
# confirmed: no
import torch


def scores(q, k):
    return torch.einsum("bihd,bjhd->bhij", q, k)
