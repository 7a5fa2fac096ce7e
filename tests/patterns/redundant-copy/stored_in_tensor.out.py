# at: out[i] = row.clone()
import torch


def gather(rows):
    out = torch.empty(len(rows), 4)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def run():
    return gather(torch.arange(12.0).view(3, 4))
