# at: x = self.fc(x)
# caller: out = model(x)
# line: from torch import nn
# fix: unsafe
# -*- coding: utf-8 -*-
"""Train."""
from __future__ import annotations

import os
os.environ["OMP_NUM_THREADS"] = "1"
import torch
from torch import nn  # layers


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        x = self.fc(x)
        return x


model = Net().cuda()
x = torch.randn(8, 8, device="cuda")
out = model(x)
