# at: features = net(views)
# line: net = DDP(net, device_ids=[gpu], find_unused_parameters=True)
# fix: unsafe
from torch.nn.parallel import DistributedDataParallel as DDP


def pretrain(net, gpu, loader, criterion):
    net = DDP(net, device_ids=[gpu], find_unused_parameters=True)
    for views in loader:
        features = net(views)
        criterion(features).backward()
