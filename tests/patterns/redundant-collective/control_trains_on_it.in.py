# at: dist.all_reduce(count)
# confirmed: no
import torch.distributed as dist


def train(net, loader, world):
    for i, (x, mask) in enumerate(loader):
        count = mask.sum()
        dist.all_reduce(count)
        loss = (net(x) * mask).sum() * world / count
        loss.backward()
