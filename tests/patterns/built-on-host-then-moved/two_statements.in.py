# at: noise = noise.cuda()
# line: noise = torch.randn(n, 4)
# fix: unsafe
import torch


def sample(n):
    noise = torch.randn(n, 4)
    noise = noise.cuda()
    return noise
