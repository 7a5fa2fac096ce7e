# at: for images in loader:
# line: loader = DataLoader(
# fix: unsafe
from torch.utils.data import DataLoader


def train(data, workers=32):
    loader = DataLoader(data, batch_size=2, num_workers=workers)
    for images in loader:
        print(images.shape)
