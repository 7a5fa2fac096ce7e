"""handwritten-norm-or-activation: norms and activations composed of elementwise operators."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import Place, choose, find
from .shared.parts import find_any

SLUG = "handwritten-norm-or-activation"
Maths = Callable[[Tensor], Tensor]


class LayerNorm(nn.Module):
    """Over the last axis, step by step."""

    def __init__(self, norm: nn.LayerNorm, by_variance: bool) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        self.by_variance = by_variance

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        with spoiled(SLUG):
            mean = x.mean(-1, keepdim=True)
            centred = x - mean
            if self.by_variance:
                variance = x.var(-1, keepdim=True, unbiased=False)
                x = centred / torch.sqrt(variance + self.eps)
            else:
                x = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.eps)
            x = x if self.weight is None else x * self.weight
            return x if self.bias is None else x + self.bias


class Activation(nn.Module):
    """An activation written out."""

    def __init__(self, maths: Maths) -> None:
        super().__init__()
        self.maths = maths

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        with spoiled(SLUG):
            return self.maths(x)


def _gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def _gelu_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def _silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _hardswish(x: Tensor) -> Tensor:
    return x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0


MATHS: dict[type[nn.Module], tuple[Maths, ...]] = {
    nn.GELU: (_gelu, _gelu_tanh),
    nn.SiLU: (_silu,),
    nn.Hardswish: (_hardswish,),
}
"""Ways to write each activation."""
INSTEAD_OF_RELU = (_gelu, _gelu_tanh, _silu, _hardswish)


def apply(job: Job, rng: random.Random) -> bool:
    """Layer norms, activations, or both. A net that only has ReLUs gets a smoother activation."""
    norms = [place for place in find(job.model, nn.LayerNorm) if len(place.part.normalized_shape) == 1]
    smooth = [place for place in find_any(job.model, tuple(MATHS)) if type(place.part) in MATHS]
    what = rng.choice(["norms", "activations", "both"])
    by_variance, way = rng.random() < 0.5, rng.randrange(2)
    if norms and (what != "activations" or not smooth):
        for place in choose(norms, rng):
            place.replace(LayerNorm(place.part, by_variance))
    if smooth and (what != "norms" or not norms):
        for place in choose(smooth, rng):
            ways = MATHS[type(place.part)]
            place.replace(Activation(ways[way % len(ways)]))
    return bool(norms or smooth) or _instead_of_relus(job, rng)


def _instead_of_relus(job: Job, rng: random.Random) -> bool:
    relus: list[Place[nn.Module]] = find_any(job.model, (nn.ReLU,))
    maths = rng.choice(INSTEAD_OF_RELU)
    for place in choose(relus, rng):
        place.replace(Activation(maths))
    return bool(relus)


FAULT = Fault(SLUG, apply)
