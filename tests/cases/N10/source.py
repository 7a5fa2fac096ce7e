# slug: pageable-transfer, blocking-transfer
# verdict: control
# silent: yes
# note: satellite segmentation on six GPUs: the copies run beside the kernels on another stream, and pinning gained nothing
import torch
from torch import nn


class TileNet(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, classes, 1))

    def forward(self, x):
        return self.body(x)


class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.load()

    def load(self):
        x, y = next(self.loader)
        with torch.cuda.stream(self.stream):
            self.x = x.cuda(non_blocking=True)
            self.y = y.cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        x, y = self.x, self.y
        self.load()
        return x, y


def train(net, loader, optimizer, criterion, steps):
    batches = Prefetcher(loader)
    for _ in range(steps):
        x, y = batches.next()
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
