# at: e.mul_(d).add_(s.to(e.device), alpha=1 - d)
# confirmed: yes
import torch


@torch.no_grad()
def update(ema, net, d):
    for e, s in zip(ema.parameters(), net.parameters()):
        print(e.shape)
        e.mul_(d).add_(s.to(e.device), alpha=1 - d)
