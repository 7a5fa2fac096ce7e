# at: total = total
# line: for p, t in zip(pred, target):
# fix: unsafe
import torch.nn.functional as F
import torch


def loss(pred, target):
    total = 0.0
    total = total + torch.vmap(lambda p, t: F.mse_loss(p, t))(pred, target).sum(0)
    return total / len(pred)
