# at: for x, y in loader:
# line: loader = DataLoader(
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(data, net):
    loader = DataLoader(data, batch_size=4, num_workers=1, pin_memory=False)
    total = 0
    for x, y in loader:
        total = total + (net(x) - y).abs().mean()
    return total


def run():
    torch.manual_seed(0)
    return train(TensorDataset(torch.rand(16, 3), torch.rand(16, 1)), torch.nn.Linear(3, 1))
