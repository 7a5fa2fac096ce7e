# at: features = net(views)
# confirmed: no
from apex.parallel import DistributedDataParallel as DDP


def pretrain(net, loader, criterion):
    net = DDP(net, delay_allreduce=True)
    for views in loader:
        features = net(views)
        criterion(features).backward()
