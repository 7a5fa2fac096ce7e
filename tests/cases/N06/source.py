# slug: redundant-copy, permute-contiguous-churn
# verdict: control
# silent: yes
# note: ConvNeXt under DDP: the strides warning is harmless, and .contiguous() is not to be added for it
import torch
from torch import nn


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv_dw = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        shortcut = x
        x = self.conv_dw(x)
        x = x.permute(0, 2, 3, 1)
        x = self.fc2(nn.functional.gelu(self.fc1(self.norm(x))))
        x = x.permute(0, 3, 1, 2)
        return shortcut + x


def main(profiler):
    model = nn.Sequential(nn.Conv2d(3, 32, 4, 4), ConvNeXtBlock(32), ConvNeXtBlock(32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(4, 3, 64, 64)
    for _ in range(7):
        loss = model(images).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
