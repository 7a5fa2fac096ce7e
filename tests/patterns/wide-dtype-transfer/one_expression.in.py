# at: batch = (torch.as_tensor(
# fix: unsafe
import torch


def to_batch(stack, dev):
    batch = (torch.as_tensor(stack).to(torch.float32) * (1 / 128) - 1.0).to(dev)
    return batch

