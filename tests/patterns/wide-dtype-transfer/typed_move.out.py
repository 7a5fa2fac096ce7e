# at: frames.to(
# fix: unsafe
import torch


def step(model, frames, device):
    return model(frames.to(device, non_blocking=True).to(torch.float32))
