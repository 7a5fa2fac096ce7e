# at: if not torch.isfinite(p.grad).all():
# confirmed: yes
import torch


def check(model):
    params = model.parameters()
    for p in params:
        if not torch.isfinite(p.grad).all():
            return False
    return True
