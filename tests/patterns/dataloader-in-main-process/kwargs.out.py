# at: for (x,) in loaders["train"]:
# line: "train": DataLoader(
import torch
from torch.utils.data import DataLoader, TensorDataset

common = dict(batch_size=4, num_workers=4)
loaders = {
    "train": DataLoader(TensorDataset(torch.arange(8.0)), **common, pin_memory=True, persistent_workers=True),
    "val": DataLoader(TensorDataset(torch.arange(8.0)), batch_size=1, num_workers=2),
}


def run():
    total = 0.0
    for (x,) in loaders["train"]:
        total = total + x.sum()
    return total
