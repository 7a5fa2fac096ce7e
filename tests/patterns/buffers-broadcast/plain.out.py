# at: loss = criterion(net(images), labels)
# line: net = DistributedDataParallel(net.cuda(rank), device_ids=[rank])
# torch: 2.4
# fix: unsafe
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, loader):
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    net = DistributedDataParallel(net.cuda(rank), device_ids=[rank], broadcast_buffers=False)  # one process per GPU
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        loss = criterion(net(images), labels)
        loss.backward()
