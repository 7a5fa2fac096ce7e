# slug: workers-respawned
# verdict: fault
# at: loader = DataLoader(
# fix: safe
# note: short epochs; every one of them forks its workers anew
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def digits(count=128):
    torch.manual_seed(1)
    return TensorDataset(torch.rand(count, 1, 28, 28), torch.randint(10, (count,)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.fc = nn.Linear(8 * 13 * 13, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return F.log_softmax(self.fc(x.flatten(1)), dim=1)


def train(epochs, profiler=None):
    ds = digits()
    torch.manual_seed(2)
    loader = DataLoader(ds, batch_size=64, shuffle=True, num_workers=1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            if profiler is not None:
                profiler.step()
    return model


def main(profiler):
    train(4, profiler)


def result():
    return [p.detach() for p in train(1).parameters()]
