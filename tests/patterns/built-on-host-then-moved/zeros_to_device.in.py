# at: mask = torch.zeros(x.shape[0], 1, dtype=torch.bool).to(x.device)
import torch


def forward(x):
    mask = torch.zeros(x.shape[0], 1, dtype=torch.bool).to(x.device)
    return x.masked_fill(mask, 1.0)


def run():
    return forward(torch.ones(2, 3))
