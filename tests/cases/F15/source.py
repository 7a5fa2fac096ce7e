# slug: inplace-activation-clones
# verdict: fault
# at: m.inplace = True
# fix: unsafe
# note: the model's own modules are out of place; the switch is what makes autograd copy
import torch
from torch import nn


class Conv(nn.Module):
    def __init__(self, cin, cout, act=None):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)
        self.act = act or nn.SiLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Conv(3, 16, nn.ReLU())
        self.body = nn.Sequential(Conv(16, 16), Conv(16, 16, nn.Hardswish()))
        self.head = nn.Conv2d(16, 5, 1)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


def prepare(net):
    for m in net.modules():
        if isinstance(m, (nn.SiLU, nn.Hardswish, nn.ReLU)):
            m.inplace = True
    return net


def main(profiler):
    torch.manual_seed(0)
    net = prepare(Detector())
    images = torch.rand(4, 3, 96, 96)
    for _ in range(6):
        net(images).square().mean().backward()
        net.zero_grad()
        profiler.step()


def result():
    torch.manual_seed(0)
    net = prepare(Detector())
    loss = net(torch.rand(2, 3, 16, 16)).square().mean()
    loss.backward()
    return loss, [p.grad for p in net.parameters()]
