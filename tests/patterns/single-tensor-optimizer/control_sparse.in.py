# at: opt.step()
import torch


def train(model):
    opt = torch.optim.SparseAdam(model.parameters())
    opt.step()
