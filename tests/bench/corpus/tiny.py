"""A small job of which the tests know every operator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bench.corpus.blocks import Attention, ConvNormAct
from bench.corpus.job import Job
from bench.corpus.marks import spoiled
from bench.corpus.surgery import find, wrap_method

SLUG = "unfused-attention"


class Tiny(nn.Module):
    """Three attentions after a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = ConvNormAct(3, 32, stride=4)
        self.layers = nn.ModuleList(Attention(32, 2) for _ in range(3))
        self.head = nn.Linear(32, 5)

    def forward(self, image: Tensor) -> Tensor:
        x = self.conv(image).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x.mean(1))


def tiny_job(*, training: bool = True, **settings: Any) -> Job:
    def make_sample(number: int) -> tuple[Tensor, ...]:
        image = torch.rand(3, 32, 32)
        return (image, torch.tensor(number % 5)) if training else (image,)

    def loss(outputs: Any, targets: tuple[Tensor, ...]) -> Tensor:
        return nn.functional.cross_entropy(outputs.float(), targets[0])

    compute_loss = loss if training else None
    return Job("tiny", Tiny(), training, make_sample, int(training), 5, compute_loss=compute_loss, **settings)


def unfuse(job: Job, count: int) -> None:
    """Write the product of the first attentions out, inside of the fault's mark."""

    def core(original: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        with spoiled(SLUG):
            return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v

    for place in find(job.model, Attention)[:count]:
        wrap_method(place.part, "core", core)
