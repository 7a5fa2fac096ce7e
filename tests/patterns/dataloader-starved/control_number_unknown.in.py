# at: for x in loader:
# confirmed: no
import os

from torch.utils.data import DataLoader


def train(data):
    loader = DataLoader(data, num_workers=len(os.sched_getaffinity(0)))
    for x in loader:
        print(x)
