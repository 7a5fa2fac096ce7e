# at: y = conv(x.double())
# confirmed: no
# device: cpu
import torch

conv = torch.nn.Conv2d(2, 3, 3).double()


def predict(x):
    y = conv(x.double())
    return y
