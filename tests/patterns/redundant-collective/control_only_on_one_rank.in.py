# at: dist.all_reduce(mean)
import torch.distributed as dist


def train(net, loader, rank):
    while True:
        mean = net(next(loader)).mean().detach()
        dist.all_reduce(mean)
        if rank == 0 and net.step % 10 == 0:
            print(mean.item())
