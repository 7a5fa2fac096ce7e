"""DCGAN: a generator of transposed convolutions against a convolutional discriminator."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ..blocks import FoldedNorm
from ..family import Family
from ..job import Job
from ..making import choose_batch_size, make_job
from ..marks import to_host


class Opposed(torch.autograd.Function):
    """Passes on, and turns the gradient round: what is before learns the opposite of what is after (Ganin and
    Lempitsky, arXiv 1409.7495), so that one backward pass trains both players."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> Tensor:
        return -grad_outputs[0]


class Generator(nn.Module):
    def __init__(self, nz: int, ngf: int, image_size: int) -> None:
        super().__init__()
        ups = {48: 2, 64: 3, 96: 3}[image_size]
        self.start = image_size >> (ups + 1)
        width = ngf << ups
        self.project = nn.Linear(nz, width * self.start**2, bias=False)
        self.project_norm = nn.BatchNorm1d(width * self.start**2)
        layers: list[nn.Module] = []
        for _ in range(ups):
            up = nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False)
            layers += [up, nn.BatchNorm2d(width // 2), nn.ReLU(inplace=True)]
            width //= 2
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z: Tensor) -> Tensor:
        x = F.relu(self.project_norm(self.project(z)))
        return self.main(x.unflatten(1, (self.start, self.start, -1)).permute(0, 3, 1, 2))


class Discriminator(nn.Module):
    def __init__(self, ndf: int, image_size: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True)]
        for width in (ndf, 2 * ndf):
            layers += [
                nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
                nn.BatchNorm2d(2 * width),
                nn.LeakyReLU(0.2, inplace=True),
            ]
        self.main = nn.Sequential(*layers)
        self.score = nn.Conv2d(4 * ndf, 1, image_size // 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.score(self.main(x)).flatten()


class GAN(nn.Module):
    """Both players' scores in one pass; only images when it does not train."""

    def __init__(self, generator: Generator, discriminator: Discriminator | None) -> None:
        super().__init__()
        self.generator = generator
        self.discriminator = discriminator

    def forward(self, z: Tensor, real: Tensor | None = None):
        fake = self.generator(z)
        if self.discriminator is None or real is None:
            return fake
        return self.discriminator(real / 127.5 - 1), self.discriminator(Opposed.apply(fake))


def fold_transposed(layers: nn.Sequential) -> None:
    """Fold each batch norm into the transposed convolution before it, in place."""
    layers.eval()
    for number, (up, norm) in enumerate(pairwise(list(layers))):
        if isinstance(up, nn.ConvTranspose2d) and isinstance(norm, nn.BatchNorm2d):
            layers[number] = fuse_conv_bn_eval(up, norm, transpose=True)
            layers[number + 1] = FoldedNorm(norm)


def adversarial(scores: tuple[Tensor, Tensor], targets: tuple[Tensor]) -> Tensor:
    """How surely the discriminator knows real (with its targets) from made."""
    real, fake = scores
    loss_real = F.binary_cross_entropy_with_logits(real.float(), targets[0])
    return loss_real + F.softplus(fake.float()).mean()


def to_bytes(images: Tensor) -> Tensor:
    return to_host(images.float().add(1).mul(127.5).to(torch.uint8))


def make(rng: random.Random, training: bool) -> Job:
    """Width 16 to 48 at the largest map, images of 48 to 96 pixels."""
    image_size, ngf = rng.choice([(48, 48), (64, 24), (64, 32), (96, 16), (96, 24)])
    nz = rng.choice([64, 96, 128])
    generator = Generator(nz, ngf, image_size)
    if not training:
        fold_transposed(generator.main)
    discriminator = Discriminator(rng.choice([32, 48]), image_size) if training else None
    real = (lambda draw: (draw.image(3, image_size, image_size),)) if training else lambda draw: ()
    return make_job(
        "dcgan",
        GAN(generator, discriminator),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.noise(nz), *real(draw)),
        targets=lambda draw: (0.8 + 0.2 * draw.uniform(1)[0],),
        loss=adversarial,
        postprocess=to_bytes,
        make_optimizer=partial(torch.optim.Adam, lr=2e-4, betas=(0.5, 0.999), foreach=True),
    )


FAMILY = Family("dcgan", "generation", make)
