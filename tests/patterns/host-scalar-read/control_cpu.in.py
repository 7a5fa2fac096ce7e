# at: total += loss.item()
# device: cpu
# confirmed: no
import torch


def train(losses):
    total = 0.0
    for loss in losses:
        total += loss.item()
    return total
