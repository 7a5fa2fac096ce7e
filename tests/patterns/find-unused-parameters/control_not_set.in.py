# at: features = net(views)
# confirmed: no
from torch.nn.parallel import DistributedDataParallel as DDP


def pretrain(net, gpu, loader, criterion):
    net = DDP(net, device_ids=[gpu], static_graph=True)
    for views in loader:
        features = net(views)
        criterion(features).backward()
