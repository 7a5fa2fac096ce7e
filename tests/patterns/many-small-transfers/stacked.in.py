# at: images = 
# fix: unsafe
import torch


def load(samples, device):
    images = torch.stack([s.image.to(device, non_blocking=True) for s in samples])
    return images
