# at: total += p.grad.norm().item() ** 2
# confirmed: yes
import torch


def norm_up_to_first_bad(model):
    total = 0.0
    for p in model.parameters():
        if torch.isnan(p.grad).any():
            break
        total += p.grad.norm().item() ** 2
    return total
