# at: pos = torch.arange(tokens.max().item() + 1)
# confirmed: no
import torch


def forward(tokens):
    pos = torch.arange(tokens.max().item() + 1)
    return pos[tokens]
