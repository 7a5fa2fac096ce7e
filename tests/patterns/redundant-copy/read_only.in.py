# at: base = x.detach().clone()
import torch


def residual_energy(x, mask):
    base = x.detach().clone()
    centred = base - base.mean(dim=(2, 3), keepdim=True)
    return (centred * mask).square().sum()


def run():
    torch.manual_seed(0)
    return residual_energy(torch.randn(2, 3, 4, 4), torch.ones(4, 4))
