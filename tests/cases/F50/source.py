# slug: data-parallel
# verdict: fault
# at: net = nn.DataParallel(net.cuda())
# fix: none
# note: the second GPU gives almost nothing: 27 s an epoch on one, 24 s with DataParallel, 18 s with a process for each
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.ops = nn.Sequential(*(nn.Conv2d(width, width, 3, padding=1) for _ in range(4)))

    def forward(self, x):
        return self.ops(x)


def train(net, loader):
    net = nn.DataParallel(net.cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.025)
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        logits = net(images)
        loss = criterion(logits.mean((2, 3)), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
