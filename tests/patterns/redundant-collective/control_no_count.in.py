# at: dist.all_reduce(seen)
import torch.distributed as dist


def train(net, loader, log):
    for x in loader:
        loss = net(x).mean()
        loss.backward()
        seen = loss.detach()
        dist.all_reduce(seen)
        log.append(seen)
