# at: losses.append(loss)
import torch
from torch import nn


def train(model, criterion, opt, batches):
    losses = []
    for x in batches:
        loss = criterion(model(x), torch.zeros(2, 2))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())  # for the plot
    return losses


def run():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    kept = train(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1), list(torch.rand(3, 2, 4)))
    return [float(one) for one in kept], model.weight
