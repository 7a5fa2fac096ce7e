# at: torch.cuda.empty_cache()
# line: gc.collect()  # leaks?
import gc

import torch


def train(batches, net):
    total = 0
    for batch in batches:
        total = total + net(batch).sum()
        gc.collect()  # leaks?
        torch.cuda.empty_cache()
    return total


def run():
    torch.manual_seed(0)
    return train([torch.rand(2, 3) for _ in range(3)], torch.nn.Linear(3, 1))
