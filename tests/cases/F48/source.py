# slug: sync-every-micro-step
# verdict: fault
# at: (ddp(b).loss / K).backward()
# fix: safe
# note: two nodes; accumulation is no faster than plain steps, as each micro-batch reduces all gradients
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

K = 4


class Model(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, batch):
        return SimpleNamespace(loss=self.body(batch).square().mean())


def train(ddp, loader, opt):
    for i, b in enumerate(loader):
        (ddp(b).loss / K).backward()
        if (i + 1) % K == 0:
            opt.step(); opt.zero_grad()


def main(rank):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    ddp = DDP(Model(2048).cuda(rank), device_ids=[rank])
    train(ddp, torch.randn(64, 32, 2048, device=rank), torch.optim.AdamW(ddp.parameters()))


def result():
    torch.manual_seed(0)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    ddp = DDP(Model())
    train(ddp, torch.randn(10, 4, 16), torch.optim.SGD(ddp.parameters(), lr=0.1))
    dist.destroy_process_group()
    return [parameter.detach() for parameter in ddp.parameters()], [parameter.grad for parameter in ddp.parameters()]
