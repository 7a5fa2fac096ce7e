"""Small healthy jobs, one for each kind of model that faults look for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.corpus.blocks import (
    Attention,
    ConvNormAct,
    CrossAttention,
    DeformableAttention,
    PatchEmbed,
    TransformerBlock,
)
from bench.corpus.boxes import Matcher, to_corners
from bench.corpus.families.detr import set_loss
from bench.corpus.job import Job
from bench.corpus.making import detections, make_job

CLASSES = 8


class Tokens(nn.Module):
    """Attention over all tokens, across, and in windows."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = PatchEmbed(3, 32, 4)
        self.blocks = nn.Sequential(
            *(TransformerBlock(32, 4) for _ in range(2)), TransformerBlock(32, 4, grid=(8, 8), window=4)
        )
        self.across = CrossAttention(32, 4)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.blocks(self.embed(image))
        return self.head(self.across(x[:, :4], x).mean(1))


class Convolutions(nn.Module):
    """Norms, activations of both kinds, pixels by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNormAct(3, 24, stride=2, act=partial(nn.ReLU, inplace=True))
        self.body = nn.Sequential(
            ConvNormAct(24, 24, act=nn.SiLU),
            ConvNormAct(24, 48, 1),
            ConvNormAct(48, 48),
            nn.GroupNorm(4, 48),
            nn.GELU(),
        )
        self.head = nn.Linear(48, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.body(self.stem(image)).mean((2, 3)))


class Clips(nn.Module):
    """Three-dimensional convolutions, the first of which cuts patches."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv3d(3, 16, (2, 4, 4), (2, 4, 4))
        self.convs = nn.Sequential(nn.Conv3d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 16, 3, padding=1))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, clip: Tensor) -> Tensor:
        return self.head(self.convs(self.embed(clip)).mean((2, 3, 4)))


class Detector(nn.Module):
    """Queries that look at sampled points of two maps, and a matcher."""

    def __init__(self) -> None:
        super().__init__()
        self.grids = ((8, 8), (4, 4))
        self.embed = PatchEmbed(3, 32, 4)
        self.queries = nn.Parameter(torch.randn(1, 16, 32))
        self.attend = nn.MultiheadAttention(32, 4, batch_first=True)
        self.own = Attention(32, 4)
        self.sample = DeformableAttention(32, 4, 2, 4)
        self.matcher = Matcher()
        self.classes, self.boxes = nn.Linear(32, CLASSES), nn.Linear(32, 4)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        tokens = self.embed(image)
        memory = torch.cat([tokens, tokens[:, :16]], 1)
        queries = self.queries.expand(len(memory), -1, -1)
        queries = queries + self.own(self.attend(queries, queries, queries, need_weights=False)[0])
        found = self.sample(queries, torch.full((len(memory), 16, 2), 0.5), memory, self.grids)
        return self.classes(found), self.boxes(found).sigmoid()


def tokens(training: bool) -> Job:
    return _classifier(Tokens(), training, 32, 32, channels_last=False)


def convolutions(training: bool) -> Job:
    return _classifier(Convolutions(), training, 24, 24)


def plain_convolutions(training: bool) -> Job:
    return _classifier(Convolutions(), training, 24, 24, channels_last=False)


def clips(training: bool) -> Job:
    return _classifier(Clips(), training, 4, 16, 16)


def detector(training: bool) -> Job:
    model = Detector()

    def loss(outputs: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
        return set_loss(model.matcher, (outputs[0][None].float(), outputs[1][None].float()), targets)

    return make_job(
        "detector",
        model,
        training,
        5,
        inputs=lambda draw: (draw.noise(3, 32, 32),),
        targets=lambda draw: (draw.label(CLASSES - 1, 3), 0.2 + 0.4 * draw.uniform(3, 4)),
        loss=loss,
        postprocess=lambda outputs: detections(to_corners(outputs[1]), outputs[0].softmax(-1), count=24),
    )


def bare(training: bool) -> Job:
    """One parameter in fp32: room for nothing."""

    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.ones(CLASSES))

        def forward(self, x: Tensor) -> Tensor:
            return (x * self.factor).mean()

    return make_job(
        "bare",
        Bare(),
        training,
        5,
        inputs=lambda draw: (draw.noise(CLASSES),),
        targets=lambda draw: (draw.noise(1),),
        loss=lambda outputs, targets: (outputs - targets[0]).square().mean(),
        autocast=None,
    )


def _classifier(model: nn.Module, training: bool, *shape: int, channels_last: bool = True) -> Job:
    return make_job(
        "classifier",
        model,
        training,
        5,
        inputs=lambda draw: (draw.noise(3, *shape),),
        targets=lambda draw: (draw.label(CLASSES),),
        loss=lambda outputs, targets: F.cross_entropy(outputs, targets[0]),
        channels_last=channels_last,
    )


JOBS: tuple[Callable[[bool], Job], ...] = (tokens, convolutions, plain_convolutions, clips, detector)
