# at: total += p.grad.norm(2).item() ** 2
import math

import torch


def grad_report(model):
    total, bad = 0.0, 0
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    grad_norm = torch.nn.utils.get_total_norm(grads)
    total += grad_norm.item() ** 2
    if not torch.isfinite(grad_norm):
        for p in model.parameters():
            if p.grad is None:
                continue
            if not torch.isfinite(p.grad).all():
                bad += 1  # told in the log
    return math.sqrt(total), bad


def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(5)))
    model[:3](torch.rand(2, 4)).sum().backward()
    healthy = grad_report(model)
    model[1].weight.grad[0, 0] = float("nan")
    model[2].bias.grad[0] = float("inf")
    return healthy, grad_report(model)
