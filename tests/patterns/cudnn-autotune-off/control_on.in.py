# at: y = net(x)
# confirmed: no
from torch.backends import cudnn

cudnn.benchmark = True


def serve(net, x):
    y = net(x)
    return y
