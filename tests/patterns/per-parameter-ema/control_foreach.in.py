# at: torch._foreach_lerp_(
# confirmed: no
import torch


@torch.no_grad()
def update(pairs, d):
    torch._foreach_lerp_([e for e, _ in pairs], [s for _, s in pairs], 1 - d)
