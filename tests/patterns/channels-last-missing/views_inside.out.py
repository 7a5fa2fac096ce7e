# at: out = model(images.cuda(non_blocking=True))
# line: model = LeNet()
# fix: unsafe
import torch
import torch.nn as nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5)

    def forward(self, x):
        x = self.conv(x)
        return x.view(x.size(0), -1)


def build(args):
    model = LeNet().to(memory_format=torch.channels_last)
    return model.cuda()


def evaluate(args, loader):
    model = build(args)
    for images, _ in loader:
        out = model(images.cuda(non_blocking=True).contiguous(memory_format=torch.channels_last))
        yield out
