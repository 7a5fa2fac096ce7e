# at: y = net(x.to(device))
# confirmed: no
import torch


def predict(net, frames, device):
    x = torch.from_numpy(frames).float() / 255
    y = net(x.to(device))
    return y, x.numpy()
