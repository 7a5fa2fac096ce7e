# at: y = conv(x)
# confirmed: no
# device: cpu
import torch

torch.backends.cudnn.enabled = False
conv = torch.nn.Conv2d(2, 3, 3)


def predict(x):
    y = conv(x)
    return y
