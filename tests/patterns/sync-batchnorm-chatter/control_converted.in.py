# at: logits = net(images)
# line: net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, rank):
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    net = DDP(net.cuda(rank), device_ids=[rank])
    for images in loader:
        logits = net(images)
        logits.mean().backward()
