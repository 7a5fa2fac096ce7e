# slug: per-parameter-ema
# verdict: fault
# at: e.mul_(d).add_(src[k], alpha=1 - d)
# at: for k, e in self.ema.state_dict().items():
# fix: safe
# note: detection, training: the averaged model follows after every step
import copy

import torch
from torch import nn


class Conv(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Detector(nn.Module):
    def __init__(self, width=8, depth=30, classes=4):
        super().__init__()
        self.backbone = nn.Sequential(Conv(3, width, 2), *(Conv(width, width) for _ in range(depth)))
        self.box = nn.Conv2d(width, 4, 1)
        self.cls = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = self.backbone(x)
        return self.box(x), self.cls(x)


class ModelEMA:
    def __init__(self, net, decay=0.999):
        self.ema = copy.deepcopy(net).eval()
        self.decay = decay

    def update(self, net):
        d = self.decay
        with torch.no_grad():
            src = net.state_dict()
            for k, e in self.ema.state_dict().items():
                if e.dtype.is_floating_point:
                    e.mul_(d).add_(src[k], alpha=1 - d)


def train(net, opt, ema, batches, profiler=None):
    for x in batches:
        box, cls = net(x)
        loss = box.square().mean() + cls.sigmoid().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
        if profiler is not None:
            profiler.step()


def main(profiler):
    net = Detector()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    train(net, opt, ModelEMA(net), torch.rand(6, 2, 3, 32, 32), profiler)


def result():
    torch.manual_seed(0)
    net = Detector(depth=2)
    ema = ModelEMA(net, 0.9)
    train(net, torch.optim.SGD(net.parameters(), lr=0.1), ema, torch.rand(3, 2, 3, 16, 16))
    return ema.ema.state_dict()
