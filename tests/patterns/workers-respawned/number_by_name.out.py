# at: return [x for
# line: loader = DataLoader(
import torch
from torch.utils.data import DataLoader


def train(data, epochs, num_workers=2):
    loader = DataLoader(data, num_workers=num_workers, batch_size=4, persistent_workers=num_workers > 0)
    return [x for _ in range(epochs) for x in loader]


def run():
    loader = train(torch.arange(8), 1, num_workers=0)
    return loader
