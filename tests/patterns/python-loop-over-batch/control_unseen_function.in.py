# at: return torch.stack(
import torch


def equalize_one(channel):
    return channel if channel.max() == 0 else torch.bincount(channel.flatten())


def equalize(image):
    return torch.stack([equalize_one(image[c]) for c in range(image.size(0))])
