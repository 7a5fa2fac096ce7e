# at: out = net(batch)
# fix: unsafe
import time

import torch


def train(net, loader, opt, dev):
    for batch in loader:
        t = [time.time()]
        out = net(batch); torch.cuda.synchronize(dev); t.append(time.time())  # forward
        net.loss(out, batch).backward()
        opt.step()
