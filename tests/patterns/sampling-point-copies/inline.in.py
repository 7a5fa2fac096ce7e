# at: a = nn.functional
# fix: safe
import torch
from torch import nn


class Warp(nn.Module):
    def forward(self, x, flow):
        a = nn.functional.grid_sample(x, flow.permute(0, 2, 3, 1).contiguous(), align_corners=True)
        return nn.functional.grid_sample(input=a.transpose(2, 3).contiguous(), grid=flow.movedim(1, -1), align_corners=True)


def run():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 6, 6, requires_grad=True)
    y = Warp()(x, torch.rand(2, 2, 6, 6) * 2 - 1)
    y.sum().backward()
    return [y, x.grad]
