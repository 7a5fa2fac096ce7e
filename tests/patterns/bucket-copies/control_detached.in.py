# at: model(x).sum().backward()
from torch.nn.parallel import DistributedDataParallel


def train(net, loader):
    model = DistributedDataParallel(net)
    for x in loader:
        model(x).sum().backward()
        for parameter in net.parameters():
            parameter.grad.detach_()
            parameter.grad.zero_()
