# at: return sum(float((p.grad ** 2).sum()) for p in parameters) ** 0.5
import torch
def total(parameters):
    return (torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None]).item() ** 2) ** 0.5


def run():
    import torch

    torch.manual_seed(0)
    parameters = [torch.rand(3, 3, requires_grad=True) for _ in range(6)]
    sum(p.pow(3).sum() for p in parameters).backward()
    return total(iter(parameters))
