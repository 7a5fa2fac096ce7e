# at: x = x.to(device)
# line: loader = DataLoader(
import torch
from torch.utils.data import DataLoader, TensorDataset


def train(device):
    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=4, pin_memory=True)
    out = []
    for (x,) in loader:
        x = x.to(device)
        out.append(x * 2)
    return out


def run():
    return train(torch.device("cpu"))
