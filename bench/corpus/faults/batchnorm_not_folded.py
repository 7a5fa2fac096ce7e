"""batchnorm-not-folded: inference runs batch norms behind convolutions that could hold them."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from ..blocks import FoldedNorm
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import Place, choose, wrap_forward
from .shared.parts import CONVOLUTIONS, Convolution

SLUG = "batchnorm-not-folded"


def apply(job: Job, rng: random.Random) -> bool:
    """Most of the norms that were folded are taken out of their convolutions again."""
    if job.is_training:
        return False
    folded = [
        (conv, Place(parent, name, norm))
        for parent in job.model.modules()
        for (_, conv), (name, norm) in pairwise(parent.named_children())
        if isinstance(norm, FoldedNorm) and isinstance(conv, CONVOLUTIONS)
    ]
    conv_of = {norm.part: conv for conv, norm in folded}
    for place in choose([norm for _, norm in folded], rng, least=0.5):
        _unfold(conv_of[place.part], place, rng)
    return bool(folded)


@torch.no_grad()
def _unfold(conv: Convolution, place: Place[FoldedNorm], rng: random.Random) -> None:
    """Part the convolution into one without bias and a norm, which together do the same."""
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    norm = place.part.kind(place.part.channels)
    assert norm.running_mean is not None and norm.running_var is not None and conv.bias is not None
    norm.weight.uniform_(0.5, 1.5, generator=generator)
    norm.running_var.uniform_(0.5, 1.5, generator=generator)
    norm.running_mean.normal_(0, 0.1, generator=generator)
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    norm.bias.copy_(conv.bias + norm.running_mean * scale)
    conv.weight.div_(scale.view(-1, *[1] * (conv.weight.dim() - 1)))
    conv.bias = None
    place.replace(norm)
    wrap_forward(norm, _marked)


def _marked(original: Callable, x: Tensor) -> Tensor:
    with spoiled(SLUG):
        return original(x)


FAULT = Fault(SLUG, apply)
