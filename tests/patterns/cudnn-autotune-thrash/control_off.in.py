# at: out = model(images)
# confirmed: no
import torch

torch.backends.cudnn.benchmark = False


def train(model, loader):
    for images in loader:
        out = model(images)
        out.sum().backward()
