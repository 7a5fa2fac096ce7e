# at: for images in loader:
# confirmed: no
import os

from torch.utils.data import DataLoader

os.environ.setdefault("OMP_NUM_THREADS", "1")


def train(data):
    loader = DataLoader(data, batch_size=2, num_workers=4)
    for images in loader:
        print(images.shape)
