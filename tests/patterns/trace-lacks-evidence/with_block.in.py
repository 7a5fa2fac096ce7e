# at: with profile(
import torch
from torch.profiler import ProfilerActivity, profile


def run():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        y = torch.ones(2) + 1
    return y
