# at: frames.to(
# fix: unsafe
import torch


def step(model, frames, device):
    return model(frames.to(device, dtype=torch.float32, non_blocking=True))
