# at: (ddp(b).mean() / K).backward()
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

K = 4


def train(ddp, loader, opt):
    for i, b in enumerate(loader):
        (ddp(b).mean() / K).backward()
        if (i + 1) % K == 0:
            opt.step(); opt.zero_grad()


def run():
    torch.manual_seed(0)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    ddp = DDP(net)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, torch.randn(10, 6, 4), opt)
    dist.destroy_process_group()
    return net.state_dict(), [parameter.grad for parameter in net.parameters()]
