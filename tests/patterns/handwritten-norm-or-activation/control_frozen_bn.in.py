# at: scale = self.weight * (self.running_var + self.eps).rsqrt()
# confirmed: no
import torch.nn as nn


class FrozenBatchNorm2d(nn.Module):
    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)
