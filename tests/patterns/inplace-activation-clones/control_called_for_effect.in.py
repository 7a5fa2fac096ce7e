# at: F.silu(self.maps[0], inplace=True)
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def forward(self, x):
        F.silu(self.maps[0], inplace=True)
        return self.maps[0] + x
