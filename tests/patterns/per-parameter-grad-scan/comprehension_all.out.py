# at: return all(
import torch


def healthy(optimizer):
    return (bool(torch.isfinite(torch.nn.utils.get_total_norm([p.grad for p in optimizer.param_groups[0]["params"] if p.grad is not None]))) or all(
        torch.isfinite(p.grad).all()
        for p in optimizer.param_groups[0]["params"]
        if p.grad is not None
    ))


def run():
    torch.manual_seed(0)
    params = [torch.rand(3, 3, requires_grad=True) for _ in range(6)]
    sum(p.pow(3).sum() for p in params[1:]).backward()
    optimizer = torch.optim.SGD(params, lr=0.1)
    before = healthy(optimizer)
    params[3].grad[0, 0] = float("nan")
    return before, healthy(optimizer)
