# at: p.data.add_(p.grad, alpha=-lr)
# confirmed: no
import torch


@torch.no_grad()
def sgd(model, lr):
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
