# at: out = model(images)
import torch


def train(model, loader, args):
    torch.backends.cudnn.benchmark = not args.multi_scale
    for images in loader:
        out = model(images)
        out.sum().backward()
