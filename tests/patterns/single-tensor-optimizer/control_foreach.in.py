# at: opt.step()
# confirmed: no
import torch


def train(model):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    opt.step()
