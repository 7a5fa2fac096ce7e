# at: loss = net(images).mean()
# confirmed: no
import torch


def train(net, loader):
    options = {"broadcast_buffers": False}
    net = torch.nn.parallel.DistributedDataParallel(net, **options)
    for images in loader:
        loss = net(images).mean()
        loss.backward()
