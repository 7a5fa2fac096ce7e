# at: y = net(x.to(device))
import numpy as np
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def predict(net, frames, mean, std):
    x = torch.from_numpy(frames).to(device).float().div_(255).sub_(mean.to(device)).div_(std.to(device))  # CPU, fp32
    y = net(x)
    return y


def run():
    frames = np.arange(48, dtype=np.uint8).reshape(1, 3, 4, 4)
    mean, std = torch.full((1, 3, 1, 1), 0.5), torch.full((1, 3, 1, 1), 0.2)
    return predict(torch.nn.Identity(), frames, mean, std).cpu()
