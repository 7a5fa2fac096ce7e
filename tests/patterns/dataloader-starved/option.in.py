# at: for images, labels in train_loader:
# line: train_loader = torch.utils.data.DataLoader(
import argparse

import torch


def options(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", "--workers", default=4, type=int)
    return parser.parse_args(arguments)


def main(dataset, model, arguments):
    args = options(arguments)
    train_loader = torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=args.workers)
    found = []
    for images, labels in train_loader:
        found.append(model(images).sum() + labels.sum())
    return found


def run():
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.rand(8, 3), torch.arange(8.0))
    return main(data, torch.nn.Linear(3, 1), [])
