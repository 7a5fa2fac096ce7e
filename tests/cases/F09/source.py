# slug: per-parameter-grad-scan
# verdict: fault
# at: if not torch.isfinite(p.grad).all():
# at: for n, p in net.named_parameters():
# fix: safe
# note: image GAN, training: both nets are checked by name before their optimizers step
import torch
from torch import nn

LATENT = 32


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.LeakyReLU(0.2))


class Generator(nn.Module):
    def __init__(self, width=16, depth=10):
        super().__init__()
        self.stem = nn.Linear(LATENT, width * 16)
        self.blocks = nn.Sequential(*(block(width, width) for _ in range(depth)))
        self.rgb = nn.Conv2d(width, 3, 1)

    def forward(self, z):
        return torch.tanh(self.rgb(self.blocks(self.stem(z).view(len(z), -1, 4, 4))))


class Discriminator(nn.Module):
    def __init__(self, width=16, depth=10):
        super().__init__()
        self.rgb = nn.Conv2d(3, width, 1)
        self.blocks = nn.Sequential(*(block(width, width) for _ in range(depth)))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.rgb(x)).mean((2, 3)))


def checked_step(net, opt):
    for n, p in net.named_parameters():
        if not torch.isfinite(p.grad).all():
            raise RuntimeError(n)
    opt.step()
    opt.zero_grad()


def train_step(G, D, opt_g, opt_d, real):
    bce = nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
    with torch.no_grad():
        fake = G(torch.randn(len(real), LATENT))
    (bce(D(real), ones) + bce(D(fake), zeros)).backward()
    checked_step(D, opt_d)
    bce(D(G(torch.randn(len(real), LATENT))), ones).backward()
    checked_step(G, opt_g)
    opt_d.zero_grad()


def main(profiler):
    G, D = Generator(), Discriminator()
    opt_g, opt_d = torch.optim.Adam(G.parameters(), lr=2e-4), torch.optim.Adam(D.parameters(), lr=2e-4)
    for _ in range(6):
        train_step(G, D, opt_g, opt_d, torch.rand(4, 3, 4, 4))
        profiler.step()


def result():
    torch.manual_seed(0)
    net = Discriminator(depth=2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.rand(2, 3, 4, 4)).sum().backward()
    checked_step(net, opt)
    weights = [p.detach().clone() for p in net.parameters()]
    net(torch.rand(2, 3, 4, 4)).sum().backward()
    net.head.bias.grad[0] = float("inf")
    try:
        checked_step(net, opt)
    except RuntimeError as error:
        return weights, len(str(error))
    return weights, 0
