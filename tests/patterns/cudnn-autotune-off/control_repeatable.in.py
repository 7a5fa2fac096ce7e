# at: y = net(x)
import torch

torch.backends.cudnn.deterministic = True


def serve(net, x):
    y = net(x)
    return y
