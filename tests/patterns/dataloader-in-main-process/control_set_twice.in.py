# at: for x in loader:
import os

from torch.utils.data import DataLoader


def read_all(data, num_workers=0):
    if os.name == "nt":
        num_workers = 0
    loader = DataLoader(data, num_workers=num_workers)
    for x in loader:
        print(x)
