# slug: explicit-synchronize
# verdict: fault
# at: out = net(batch)
# at: net.loss(out, batch).backward()
# fix: unsafe
# note: point-cloud segmentation, training: the loop times its own phases
import time

import torch
from torch import nn


class PointNet(nn.Module):
    def __init__(self, width=64, classes=13):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, classes)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, batch):
        return self.head(self.mlp(batch["points"]))

    def loss(self, out, batch):
        return self.criterion(out.flatten(0, 1), batch["labels"].flatten())


def train(net, loader, opt, dev, log):
    for batch in loader:
        t = [time.time()]
        out = net(batch); torch.cuda.synchronize(dev); t.append(time.time())
        net.loss(out, batch).backward(); torch.cuda.synchronize(dev); t.append(time.time())
        opt.step()
        opt.zero_grad()
        log.append([b - a for a, b in zip(t, t[1:])])
