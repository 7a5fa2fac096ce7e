# at: optimizer.step()
# line: return optim.Adam(params, lr=cfg["lr"], **extra)
import torch
from torch import nn, optim


def make_optimizer(model, cfg):
    params = model.parameters()
    extra = {"betas": (0.9, 0.99), "fused": False}
    return optim.Adam(params, lr=cfg["lr"], **extra)


def run():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    optimizer = make_optimizer(model, {"lr": 0.1})
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    return list(model.parameters())
