# at: loss.backward()
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, opt, k):
    net, seen = DDP(net), 0
    for x in loader:
        loss = net(x).mean() / k
        loss.backward()
        seen += 1
        if seen % k == 0:
            opt.step()
            opt.zero_grad()
