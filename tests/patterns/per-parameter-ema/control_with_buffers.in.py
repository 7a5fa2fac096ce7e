# at: e.copy_(d * e + (1 - d) * s)
# confirmed: yes
import torch


@torch.no_grad()
def update(ema, net, d):
    """Counters are among the tensors: no multi-tensor blend takes whole numbers."""
    for e, s in zip(ema.state_dict().values(), net.state_dict().values()):
        e.copy_(d * e + (1 - d) * s)
