# at: for samples in DataLoader(
# fix: unsafe
from torch.utils.data import DataLoader
import torch

torch.multiprocessing.set_sharing_strategy("file_system")


def train(data):
    for samples in DataLoader(data, batch_size=8, num_workers=4, collate_fn=lambda x: x):
        print(samples)
