# at: model(x).sum().backward()
# torch: 1.6.0
from torch.nn.parallel import DistributedDataParallel


def train(net, loader):
    model = DistributedDataParallel(net)
    for x in loader:
        model(x).sum().backward()
