# at: model(x).sum().backward()
# confirmed: no
from torch.nn.parallel import DistributedDataParallel


def train(net, loader):
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    for x in loader:
        model(x).sum().backward()
