# at: out = model(images)
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x).relu()


def train(model, images):
    model(images).sum().backward()


class Runner:
    @staticmethod
    def validate(model, loader):
        """Mean of the outputs."""
        model.eval()
        total, n = 0.0, 0
        for images in loader:
            out = model(images)
            total += out.mean().item()
            n += len(images)
        model.train()
        return total / n


def run():
    torch.manual_seed(0)
    model = Net()
    train(model, torch.rand(2, 4))
    return Runner.validate(model, [torch.rand(2, 4), torch.rand(3, 4)]), model.body.weight.grad
