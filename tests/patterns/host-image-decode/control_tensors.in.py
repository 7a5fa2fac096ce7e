# at: for x, y in loader:
# confirmed: no
import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def train(x, y):
    loader = DataLoader(Numbers(x, y), batch_size=32, num_workers=4)
    for x, y in loader:
        print(x.shape)
