# at: loss = criterion(net(views))
# line: net = DDP(net, device_ids=[gpu], **options)
# fix: unsafe
from torch.nn.parallel import DistributedDataParallel as DDP


def pretrain(net, gpu, loader, criterion, args):
    options = {"bucket_cap_mb": 50}
    options["find_unused_parameters"] = True  # silences an error
    net = DDP(net, device_ids=[gpu], **options)
    for views in loader:
        loss = criterion(net(views))
        loss.backward()
