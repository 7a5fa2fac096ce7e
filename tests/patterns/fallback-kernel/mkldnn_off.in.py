# at: y = conv(x)
# line: torch.backends.mkldnn.enabled = False
# device: cpu
import torch

torch.backends.mkldnn.enabled = False
torch.manual_seed(0)
conv = torch.nn.Conv2d(2, 3, 3, dilation=2)


def predict(x):
    with torch.no_grad():
        y = conv(x)
    return y


def run():
    return predict(torch.linspace(0, 1, 200).view(1, 2, 10, 10))
