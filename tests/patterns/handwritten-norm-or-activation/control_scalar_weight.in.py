# at: mean = x.mean(-1, keepdim=True)
# confirmed: no
import torch
import torch.nn as nn


class Standardise(nn.Module):
    """One weight for all features: the library's layer norm wants one for each."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        y = self.gain * (x - mean) / torch.sqrt(var + 1e-5)
        return y
