# at: total = total
# line: for p, t in zip(pred, target):
# fix: unsafe
import torch.nn.functional as F


def loss(pred, target):
    total = 0.0
    for p, t in zip(pred, target):
        total = total + F.mse_loss(p, t)
    return total / len(pred)
