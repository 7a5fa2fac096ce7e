# at: if p.grad is None or not torch.isfinite(p.grad).all():
# confirmed: yes
import torch


def check(model):
    """A gradient that is missing is an error as well: no norm tells of it."""
    for p in model.parameters():
        if p.grad is None or not torch.isfinite(p.grad).all():
            raise ValueError("missing or non-finite gradient")
