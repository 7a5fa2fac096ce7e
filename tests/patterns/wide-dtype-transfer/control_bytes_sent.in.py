# at: x = torch.from_numpy
# confirmed: no
import torch


def predict(net, frames, device):
    x = torch.from_numpy(frames).to(device).float() / 255
    return net(x)
