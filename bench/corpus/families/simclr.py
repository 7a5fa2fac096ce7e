"""SimCLR: two views of each image in one batch; inference gives embeddings for search."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from ..marks import to_host
from .resnet import BasicBlock


class SimCLR(nn.Module):
    def __init__(self, width: int, depth: int, hidden: int, out: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        stages: list[nn.Module] = []
        for stage in range(3):
            stages.append(BasicBlock(width << max(stage - 1, 0), width << stage, 2 if stage else 1))
            stages += [BasicBlock(width << stage, width << stage) for _ in range(depth - 1)]
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            *stages,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(width << 2, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, out, bias=False),
        )

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        """Training: two views of each image -> the projections of all first views, then of all second. Else the
        features of images."""
        if second is None:
            return F.normalize(self.encoder(self.normalize(first)).float(), dim=1)
        features = self.encoder(self.normalize(torch.cat((first, second))))
        return F.normalize(self.projector(features).float(), dim=1)


def nt_xent(projections: Tensor, targets: tuple[()], temperature: float = 0.2) -> Tensor:
    """Each view's partner among all others."""
    count = len(projections)
    similarity = projections @ projections.T / temperature
    itself = torch.eye(count, dtype=torch.bool, device=projections.device)
    partner = torch.arange(count, device=projections.device).roll(count // 2)
    return F.cross_entropy(similarity.masked_fill(itself, -1e9), partner)


def _sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.03, momentum=0.9, weight_decay=1e-4, foreach=True)


def make(rng: random.Random, training: bool) -> Job:
    """Width 24 to 48, one or two blocks a stage, views of 32 or 48 pixels."""
    width, side = rng.choice([(24, 48), (32, 48), (48, 32), (32, 32)])
    views = 2 if training else 1
    return make_job(
        "simclr",
        SimCLR(width, rng.choice([1, 2]), rng.choice([128, 256]), rng.choice([64, 96])),
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: tuple(draw.image(3, side, side) for _ in range(views)),
        targets=lambda draw: (),
        loss=nt_xent,
        postprocess=to_host,
        make_optimizer=_sgd,
    )


FAMILY = Family("simclr", "retrieval", make)
