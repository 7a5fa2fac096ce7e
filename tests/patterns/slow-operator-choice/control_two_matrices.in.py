# at: m = torch.einsum("ik,kj->ij", a, a.t())
# confirmed: no
import torch


def affinity(a):
    m = torch.einsum("ik,kj->ij", a, a.t())
    return m
