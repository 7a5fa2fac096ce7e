# slug: sync-every-micro-step
# verdict: control
# silent: yes
# note: two GPUs in one machine; reductions hide behind the backward pass, and no_sync changed nothing
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Detector(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.SiLU(), nn.Conv2d(width, 5, 1))

    def forward(self, images):
        return self.layers(images)


def train(ddp, loader, optimizer, accumulate):
    for ni, (images, targets) in enumerate(loader):
        pred = ddp(images)
        loss = (pred - targets).square().mean() * 2
        loss.backward()
        if ni % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def main(rank):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    ddp = DDP(Detector().cuda(rank), device_ids=[rank])
    train(ddp, [], torch.optim.SGD(ddp.parameters(), lr=0.01), 4)
