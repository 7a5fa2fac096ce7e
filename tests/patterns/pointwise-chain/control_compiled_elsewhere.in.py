# at: return (x * 2 + 1).exp().log1p()
# confirmed: no
import torch
import torch.nn as nn


class Head(nn.Module):
    def forward(self, x):
        return (x * 2 + 1).exp().log1p()


net = torch.compile(Head())
