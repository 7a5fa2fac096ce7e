# at: fake = netG(z)
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x).relu()


def d_step(netG, netD, opt, real, z):
    fake = netG(z)
    loss = netD(real).mean() - netD(fake.detach()).mean()
    loss.backward()
    opt.step()
    # the generator's own step
    fake = netG(z)
    (-netD(fake).mean()).backward()
    return loss.item()


def run():
    torch.manual_seed(0)
    G, D = Net(), Net()
    loss = d_step(G, D, torch.optim.SGD(D.parameters(), lr=0.1), torch.rand(2, 4), torch.rand(2, 4))
    return loss, [p.grad for p in G.parameters()], list(D.parameters())
