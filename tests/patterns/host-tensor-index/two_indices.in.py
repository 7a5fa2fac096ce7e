# at: z[:, torch.
import torch


def upper(z):
    n = z.shape[1]
    return z[:, torch.arange(n), torch.arange(n).flip(0).view(-1)]


def run():
    return upper(torch.arange(18.0).view(2, 3, 3))
