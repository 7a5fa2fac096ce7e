# at: images = 
# fix: unsafe
import torch


def load(samples, device):
    images = torch.stack([s.image for s in samples]).to(device, non_blocking=True)
    return images
