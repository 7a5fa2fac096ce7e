# at: features.append(model(x))
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x).relu()


def embed(model, batches):
    features = []
    for x in batches:
        features.append(model(x))
    return torch.cat(features)


def run():
    torch.manual_seed(0)
    return embed(Net().eval(), [torch.rand(2, 4), torch.rand(3, 4)]).detach()


if __name__ == "__main__":
    print(run())
