# at: for x in loader:
# confirmed: no
import cv2
from torch.utils.data import DataLoader, Dataset


class Films(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, i):
        return cv2.imread(self.paths[i])


def train(paths):
    loader = DataLoader(Films(paths), num_workers=32)
    for x in loader:
        print(x.shape)
