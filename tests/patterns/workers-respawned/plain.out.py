# at: for x, y in loader:
# line: loader = DataLoader(
from torch.utils.data import DataLoader


def train(data, net, opt, epochs):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
    for epoch in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            (net(x) - y).pow(2).mean().backward()
            opt.step()


def run():
    import torch
    from torch.utils.data import TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.rand(16, 3), torch.rand(16, 1))
    net = torch.nn.Linear(3, 1)
    train(data, net, torch.optim.SGD(net.parameters(), lr=0.1), 2)
    return list(net.parameters())
