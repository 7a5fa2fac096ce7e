# at: total_norm += param_norm.item() ** 2
import torch


def clip(params, max_norm):
    total_norm = 0
    for p in params:
        param_norm = p.grad.data.norm(2)
        total_norm += param_norm.item() ** 2
    total_norm = total_norm ** 0.5
    scale = max_norm / (total_norm + 1e-6)
    if scale < 1:
        for p in params:
            p.grad.data.mul_(scale)
    return total_norm


def run():
    torch.manual_seed(0)
    params = [torch.rand(3, 3, requires_grad=True) for _ in range(6)]
    sum(p.pow(3).sum() for p in params).backward()
    norm = clip(params, 1.0)
    return norm, [p.grad for p in params]
