# at: opt.zero_grad()
# confirmed: no
import torch


def train(model, opt, batches):
    for x in batches:
        opt.zero_grad()
        model(x).pow(2).sum().backward()
        opt.step()
