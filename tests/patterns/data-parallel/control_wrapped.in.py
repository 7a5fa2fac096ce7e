# at: logits = net(images)
# line: net = nn.DataParallel(net.cuda())
import torch.nn as nn


def train(net, loader, criterion):
    net = nn.DataParallel(net.cuda())
    for images, labels in loader:
        logits = net(images)
        criterion(logits, labels.cuda()).backward()
