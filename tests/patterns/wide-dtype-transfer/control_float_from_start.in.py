# at: net(x.to(device))
# confirmed: no
import torch


def predict(net, device):
    x = torch.randn(8, 3, 224, 224)
    return net(x.to(device))
