# at: u = x.mean(1, keepdim=True)
# fix: unsafe
import torch
import torch.nn as nn
import torch.nn.functional as F


class LayerNorm(nn.Module):
    def __init__(self, size, eps=1e-6, data_format="channels_last"):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.eps = eps
        self.data_format = data_format
        self.size = (size,)

    def forward(self, x):
        if self.data_format == "channels_last":
            return F.layer_norm(x, self.size, self.weight, self.bias, self.eps)
        elif self.data_format == "channels_first":
            x = F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2], self.weight, self.bias, eps=self.eps).permute(0, 3, 1, 2)
            return x
