# slug: zero-grad-to-zero
# verdict: control
# silent: yes
# torch: 2.0
# note: plain zero_grad() drops the gradients since PyTorch 2.0
import torch
from torch import nn


def train(net, opt, batches, profiler=None):
    for x in batches:
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
        if profiler is not None:
            profiler.step()


def main(profiler):
    net = nn.Sequential(*(nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)) for _ in range(20)))
    train(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.rand(6, 2, 8, 16, 16), profiler)
