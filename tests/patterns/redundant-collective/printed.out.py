# at: mean_loss = reduce_mean(loss.detach(), world)
# caller: train(net, batches, world)
import torch
import torch.distributed as dist
from torch import nn

PRINT_EVERY = 4


def reduce_mean(value, world):
    value = value.clone()
    dist.all_reduce(value)
    return value / world


def train(net, batches, world):
    shown = []
    for i, x in enumerate(batches):
        loss = net(x).square().mean()
        loss.backward()
        if i % PRINT_EVERY == 0:
            # what people watch
            mean_loss = reduce_mean(loss.detach(), world)
            shown.append(round(mean_loss.item(), 4))
    return shown


def run():
    torch.manual_seed(0)
    world = 1
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=world)
    net, batches = nn.Linear(3, 2), torch.randn(9, 5, 3)
    shown = train(net, batches, world)
    dist.destroy_process_group()
    return shown, [parameter.grad for parameter in net.parameters()]
