# at: for images, targets in loader:
# line: return tuple(zip(*batch))
# fix: unsafe
from functools import partial

from torch.utils.data import DataLoader


def collate_fn(batch, size=None):
    return tuple(zip(*batch))


def train(data):
    loader = DataLoader(data, batch_size=8, num_workers=4, collate_fn=partial(collate_fn, size=2))
    for images, targets in loader:
        print(len(targets))
