# at: loss.backward()
# line: dist.init_process_group("gloo", rank=rank, world_size=world)
# fix: unsafe
# torch: 1.13.1
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world, net, loader):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = DDP(net.cuda(rank), device_ids=[rank])
    for images in loader:
        loss = net(images.cuda(rank)).mean()
        loss.backward()
