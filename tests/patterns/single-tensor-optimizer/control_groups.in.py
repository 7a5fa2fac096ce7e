# at: opt.step()
import torch


def train(model):
    opt = torch.optim.Adam([{"params": [p], "lr": rate(n)} for n, p in model.named_parameters()])
    opt.step()
