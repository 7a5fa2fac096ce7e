# at: return {k: v.cuda(non_blocking=True) for k, v in batch.items()}
# caller: batch = to_gpu(batch)
# line: self.loader = DataLoader(
# fix: safe
import torch
from torch.utils.data import DataLoader


def to_gpu(batch):
    return {k: v.cuda(non_blocking=True) for k, v in batch.items()}


class Trainer:
    def __init__(self, data):
        self.loader = DataLoader(data, 16, num_workers=4, pin_memory=False)
        self.val_loader = DataLoader(data, 16, pin_memory=True)

    def train(self):
        for step, batch in enumerate(self.loader):
            batch = to_gpu(batch)
            yield batch


def run():
    return torch.ones(1)
