# at: buffers[i] = torch.clone
# confirmed: no
import torch


def step(grads, buffers, momentum):
    for i, grad in enumerate(grads):
        if buffers[i] is None:
            buffers[i] = torch.clone(grad).detach()
        else:
            buffers[i].mul_(momentum).add_(grad)
    return buffers
