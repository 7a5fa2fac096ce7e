# at: total += loss.item()
import torch


def train(loader, bar):
    total = 0.0
    for i, loss in enumerate(loader):
        total += loss.item()
        bar.set_postfix(loss=total / (i + 1))
    return total
