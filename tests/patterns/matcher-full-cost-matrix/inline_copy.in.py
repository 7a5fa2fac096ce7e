# at: return [
# fix: safe
import torch


def solve(block):
    return block.sum(), block.shape


def lapjv(block):
    return solve(block)


def match(cost, counts):
    return [lapjv(part[k]) for k, part in enumerate(cost.cpu().split(counts, dim=-1))]


def run():
    torch.manual_seed(0)
    return match(torch.rand(3, 6, 10), [3, 5, 2])
