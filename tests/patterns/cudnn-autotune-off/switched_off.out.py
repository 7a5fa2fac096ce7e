# at: y = net(x)
# line: torch.backends.cudnn.benchmark = False
# fix: unsafe
import torch

torch.backends.cudnn.benchmark = True


def serve(net, x):
    y = net(x)
    return y
