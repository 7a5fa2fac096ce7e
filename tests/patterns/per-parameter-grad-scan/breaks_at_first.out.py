# at: if param.grad is not None and torch.isnan
import torch


def healthy(model):
    has_nan = False
    grads = [param.grad for name, param in model.named_parameters() if param.grad is not None]
    if not torch.isfinite(torch.nn.utils.get_total_norm(grads)):
        for name, param in model.named_parameters():
            if param.grad is not None and torch.isnan(param.grad).any():
                has_nan = True
                print(f"NaN in {name}")
                break
    return not has_nan


def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(5)))
    model[:3](torch.rand(2, 4)).sum().backward()
    before = healthy(model)
    model[1].weight.grad[0, 0] = float("inf")
    overflown = healthy(model)
    model[2].weight.grad[0, 0] = float("nan")
    return before, overflown, healthy(model)
