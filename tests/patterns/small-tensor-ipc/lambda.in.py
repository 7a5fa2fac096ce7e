# at: for samples in DataLoader(
# fix: unsafe
from torch.utils.data import DataLoader


def train(data):
    for samples in DataLoader(data, batch_size=8, num_workers=4, collate_fn=lambda x: x):
        print(samples)
