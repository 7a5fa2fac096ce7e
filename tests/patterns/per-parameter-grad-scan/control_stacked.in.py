# at: flags = torch.stack
# confirmed: no
import torch


def check(net):
    flags = torch.stack([torch.isfinite(p.grad).all() for p in net.parameters()])
    if not bool(flags.all()):
        raise RuntimeError("non-finite gradient")
