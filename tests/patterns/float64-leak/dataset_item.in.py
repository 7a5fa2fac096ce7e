# at: y.to(device)
# line: return image, heat
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

device = torch.device("cpu")


class Keypoints(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = torch.full((1, 4, 4), float(index))
        grid = np.linspace(0, 3, 4)
        heat = np.exp(-((grid - index % 4) ** 2) / 2)
        return image, heat


def train(loader):
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        total = total + ((x.mean((1, 2)) - y) ** 2).sum()
    return total


def run():
    return train(DataLoader(Keypoints(8), batch_size=4)).float()
