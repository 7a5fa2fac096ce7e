# at: y = self.fc(x.permute(0, 2, 3, 1).contiguous())
# confirmed: yes
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        y = self.fc(x.permute(0, 2, 3, 1).contiguous())
        y = y.relu()
        y = y.permute(0, 3, 1, 2).contiguous()
        return x + y
