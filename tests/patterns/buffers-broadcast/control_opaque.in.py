# at: loss = net(images).mean()
import torch


def train(net, loader, config):
    net = torch.nn.parallel.DistributedDataParallel(net, **config.ddp)
    for images in loader:
        loss = net(images).mean()
        loss.backward()
