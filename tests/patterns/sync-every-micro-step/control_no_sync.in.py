# at: loss.backward()
# confirmed: no
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, opt, k):
    net = DDP(net)
    for i, x in enumerate(loader):
        net.require_backward_grad_sync = False
        with net.no_sync():
            loss = net(x).mean() / k
            loss.backward()
        if i % k == k - 1:
            opt.step()
            opt.zero_grad()
