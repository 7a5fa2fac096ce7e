# at: torch.save(net.state_dict(), path)
# caller: keep(net, "last.pt")  # every time
# line: keep(net, "last.pt")  # every time
# fix: unsafe
import torch


def keep(net, path):
    torch.save(net.state_dict(), path)


def train(batches, net, opt):
    done = 0
    for batch in batches:
        net(batch).sum().backward()
        opt.step()
        done += 1
        if done % 50 == 0:
            keep(net, "last.pt")  # every time
