# slug: autograd-in-eval
# verdict: fault
# at: fake = G(z)
# fix: safe
# note: image GAN, training: the generator's graph is built for the discriminator's step and cut off behind it
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

LATENT = 32


class Generator(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(LATENT, width * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(width * 4),
            nn.ReLU(),
            nn.ConvTranspose2d(width * 4, width * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.ReLU(),
            nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width * 2, 1, 8),
        )

    def forward(self, x):
        return self.net(x).flatten(1)


def train_discriminator(G, D, opt_d, real, z):
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
    opt_d.zero_grad()
    fake = G(z)
    loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    loss_d.backward()
    opt_d.step()
    return loss_d.item()


def train_generator(G, D, opt_g, z):
    opt_g.zero_grad()
    loss_g = bce(D(G(z)), torch.ones(len(z), 1))
    loss_g.backward()
    opt_g.step()
    return loss_g.item()


def train(G, D, batches, profiler=None):
    opt_g, opt_d = torch.optim.Adam(G.parameters(), lr=2e-4), torch.optim.Adam(D.parameters(), lr=2e-4)
    losses = []
    for real in batches:
        z = torch.randn(len(real), LATENT)
        losses.append((train_discriminator(G, D, opt_d, real, z), train_generator(G, D, opt_g, z)))
        if profiler is not None:
            profiler.step()
    return losses


def main(profiler):
    train(Generator(), Discriminator(), torch.rand(6, 8, 1, 32, 32), profiler)


def result():
    torch.manual_seed(0)
    return train(Generator(), Discriminator(), torch.rand(3, 4, 1, 32, 32))
