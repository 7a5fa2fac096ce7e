# at: worst = max(worst, p.grad.abs().max().item())
# fix: unsafe
import torch


def watch(model, stats):
    worst = 0.0
    for p in model.parameters():
        if p.grad is not None:
            worst = max(worst, p.grad.abs().max().item())
    stats["worst_grad"] = worst


def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    model(torch.rand(5, 3)).square().sum().backward()
    stats = {}
    watch(model, stats)
    return torch.tensor(stats["worst_grad"])
