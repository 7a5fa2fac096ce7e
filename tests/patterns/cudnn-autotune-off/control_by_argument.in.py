# at: y = net(x)
# confirmed: no
import torch


def setup(args):
    torch.backends.cudnn.benchmark = args.benchmark


def serve(net, x):
    y = net(x)
    return y
