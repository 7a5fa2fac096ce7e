"""Heads in a ModuleDict, own parameters in lists, layers taken from another model."""

import torch
from torch import nn


class Heads(nn.Module):
    tasks = {"cls": 5, "box": 4}

    def __init__(self, width=16):
        super().__init__()
        base = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU(), nn.Flatten())
        self.features = nn.Sequential(*list(base.children())[:-1])
        self.first = base[0]
        self.heads = nn.ModuleDict({name: nn.Linear(width, n) for name, n in self.tasks.items()})
        self.heads["mask"] = nn.Sequential(nn.Linear(width, width), nn.Linear(width, 1))
        self.heads.update({"key": nn.Bilinear(width, width, 3)})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(3)])
        self.lstm = nn.LSTM(width, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 32, batch_first=True), 2)
        self.attention = nn.MultiheadAttention(width, 2, kdim=8, vdim=8, batch_first=True)

    def forward(self, x):
        x = self.features(x).mean((2, 3))
        return {name: head(x) for name, head in self.heads.items() if name != "key"}


model = Heads()
example = torch.randn(2, 3, 16, 16)
