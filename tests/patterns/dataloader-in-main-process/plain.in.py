# at: for images, labels in loader:
# line: loader = DataLoader(
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((3,), float(i)), i * i


def run():
    torch.manual_seed(0)
    loader = DataLoader(Squares(), batch_size=2, shuffle=True)  # größe 2
    seen = []
    for images, labels in loader:
        seen.append(images.sum() + labels.sum())
    return seen
