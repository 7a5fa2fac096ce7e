# at: for images in loader:
# line: os.environ["OMP_NUM_THREADS"] = "64"
# fix: unsafe
import os

os.environ["OMP_NUM_THREADS"] = "1"

from torch.utils.data import DataLoader


def train(data):
    loader = DataLoader(data, batch_size=2, num_workers=4)
    for images in loader:
        print(images.shape)
