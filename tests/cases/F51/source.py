# slug: sync-batchnorm-chatter
# verdict: fault
# at: net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
# fix: none
# note: MobileNetV2 on 8 GPUs, an old release: three collectives for each norm; batched 453 -> 373 ms
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class MobileNet(nn.Module):
    def __init__(self, width=32, layers=50):
        super().__init__()
        blocks = [part for _ in range(layers) for part in (nn.Conv2d(width, width, 3), nn.BatchNorm2d(width))]
        self.features = nn.Sequential(*blocks)

    def forward(self, images):
        return self.features(images)


def main(rank, loader):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    net = MobileNet()
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    net = DDP(net.cuda(rank), device_ids=[rank])
    for images in loader:
        out = net(images)
        out.mean().backward()
