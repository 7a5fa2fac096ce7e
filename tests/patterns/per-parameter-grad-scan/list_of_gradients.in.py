# at: total += torch.linalg.vector_norm(g).item() ** 2.0
import torch


def report(parameters):
    grads = [p.grad for p in parameters if p.grad is not None]
    total = 0.0
    for g in grads:
        total += torch.linalg.vector_norm(g).item() ** 2.0
    return total ** 0.5


def run():
    torch.manual_seed(0)
    parameters = [torch.rand(3, 3, requires_grad=True) for _ in range(6)]
    sum(p.pow(3).sum() for p in parameters[:4]).backward()
    return report(parameters)
