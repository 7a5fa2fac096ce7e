"""VAE-GAN: an autoencoder whose reconstructions a discriminator judges in patches, as latent diffusion's are."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import ConvNormAct, Residual, Upsample
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from .dcgan import Opposed, to_bytes

LATENT = 8


class Encoder(nn.Sequential):
    def __init__(self, widths: tuple[int, ...], conv, depth: int) -> None:
        layers: list[nn.Module] = [conv(3, widths[0])]
        for inputs, outputs in zip(widths, (*widths[1:], widths[-1]), strict=True):
            layers += [conv(inputs, outputs, stride=2), *(Residual(conv(outputs, outputs)) for _ in range(depth))]
        super().__init__(*layers, nn.Conv2d(widths[-1], 2 * LATENT, 1))


class Decoder(nn.Sequential):
    def __init__(self, widths: tuple[int, ...], conv, norm, depth: int) -> None:
        layers: list[nn.Module] = [conv(LATENT, widths[-1])]
        for inputs, outputs in zip(widths[::-1], (*widths[-2::-1], widths[0]), strict=True):
            layers += [*(Residual(conv(inputs, inputs)) for _ in range(depth)), Upsample(inputs, outputs, norm=norm)]
        super().__init__(*layers, nn.Conv2d(widths[0], 3, 3, padding=1), nn.Tanh())


class PatchDiscriminator(nn.Sequential):
    def __init__(self, width: int) -> None:
        act = partial(nn.LeakyReLU, 0.2, inplace=True)
        super().__init__(
            nn.Conv2d(3, width, 4, 2, 1),
            act(),
            ConvNormAct(width, 2 * width, stride=2, act=act),
            ConvNormAct(2 * width, 4 * width, act=act),
            nn.Conv2d(4 * width, 1, 1),
        )


class VAEGAN(nn.Module):
    def __init__(self, encoder: Encoder, decoder: Decoder, discriminator: PatchDiscriminator | None) -> None:
        super().__init__()
        self.normalize = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.encoder, self.decoder, self.discriminator = encoder, decoder, discriminator

    def forward(self, image: Tensor):
        """Training: image, reconstruction, mean and log variance of the latent, scores of both. Else the
        reconstruction."""
        image = self.normalize(image)
        mean, log_variance = self.encoder(image).chunk(2, dim=1)
        if self.discriminator is None:
            return self.decoder(mean)
        latent = torch.addcmul(mean, torch.randn_like(mean), (log_variance / 2).exp())
        made = self.decoder(latent)
        return image, made, mean, log_variance, self.discriminator(image), self.discriminator(Opposed.apply(made))


def vae_gan_loss(outputs: tuple[Tensor, ...], targets: tuple[()]) -> Tensor:
    image, made, mean, log_variance, real, fake = outputs
    divergence = (mean.square() + log_variance.exp() - log_variance - 1).mean() / 2
    hinge = F.relu(1 - real).mean() + F.relu(1 + fake).mean()
    return F.l1_loss(made, image) + 1e-3 * divergence + 0.1 * hinge


def make(rng: random.Random, training: bool) -> Job:
    """Two or three levels from 16 to 32 channels on, group or batch norm, images of 48 to 96 pixels."""
    widths = rng.choice([(16, 32, 64), (24, 48), (32, 64)])
    side = rng.choice([48, 64]) if len(widths) == 2 else rng.choice([64, 96])
    norm = rng.choice([nn.BatchNorm2d, partial(nn.GroupNorm, 8)])
    conv = partial(ConvNormAct, norm=norm, act=nn.SiLU)
    depth = rng.choice([1, 2])
    model = VAEGAN(
        Encoder(widths, conv, depth),
        Decoder(widths, conv, norm, depth),
        PatchDiscriminator(rng.choice([16, 24])) if training else None,
    )
    return make_job(
        "vae_gan",
        model,
        training,
        choose_batch_size(rng, at_most=7),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (),
        loss=vae_gan_loss,
        postprocess=to_bytes,
    )


FAMILY = Family("vae_gan", "generation", make)
