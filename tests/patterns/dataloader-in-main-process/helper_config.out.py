# at: batch = next(batches)
# line: return DataLoader(dataset,
import argparse

import torch
from torch.utils import data
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("-j", "--workers", default=4, type=int, metavar="N")
args = parser.parse_args([])


def build(dataset, *, train):
    return DataLoader(dataset, batch_size=3, shuffle=False,
                      num_workers=args.workers, drop_last=train, pin_memory=True)


def main():
    dataset = data.TensorDataset(torch.arange(9.0))
    train, val = build(dataset, train=True), build(dataset, train=False)
    batches = iter(train)
    out = []
    for _ in range(3):
        batch = next(batches)
        out.append(batch[0] * 2)
    return out


run = main
