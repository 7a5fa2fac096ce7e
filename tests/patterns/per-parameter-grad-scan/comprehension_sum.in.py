# at: return sum(float((p.grad ** 2).sum()) for p in parameters) ** 0.5
def total(parameters):
    return sum(float((p.grad ** 2).sum()) for p in parameters) ** 0.5


def run():
    import torch

    torch.manual_seed(0)
    parameters = [torch.rand(3, 3, requires_grad=True) for _ in range(6)]
    sum(p.pow(3).sum() for p in parameters).backward()
    return total(iter(parameters))
