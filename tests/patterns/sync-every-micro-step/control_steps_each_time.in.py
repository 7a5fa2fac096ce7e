# at: loss.backward()
# confirmed: no
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, opt, scheduler):
    net = DDP(net)
    for i, x in enumerate(loader):
        loss = net(x).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if i % 10 == 0:
            scheduler.step()
