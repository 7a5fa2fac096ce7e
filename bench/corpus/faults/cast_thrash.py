"""cast-thrash: tensors are cast between float32 and half precision over and over."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, wrap_forward
from .shared.dtypes import HALF
from .shared.parts import ACTIVATIONS, BLOCKS, CONVOLUTIONS, Convolution, find_any

SLUG = "cast-thrash"
_CASTING_LAYERS = (nn.Linear, *CONVOLUTIONS)


def _other_type(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in HALF else torch.bfloat16


def _round_operator(original: Callable, x: Tensor) -> Tensor:
    """`act(x.float()).to(x.dtype)`, or the other way round where the activations are float."""
    dtype = x.dtype
    if not dtype.is_floating_point:
        return original(x)
    with spoiled(SLUG):
        x = x.to(_other_type(dtype))
    result = original(x)
    with spoiled(SLUG):
        return result.to(dtype)


def _round_block(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
    """Both ends of a block are cast there and back, as where each checks its own input."""
    if not x.is_floating_point():
        return original(x, *others)
    with spoiled(SLUG):
        x = x.to(_other_type(x.dtype)).to(x.dtype)
    result = original(x, *others)
    with spoiled(SLUG):
        return result.to(_other_type(result.dtype)).to(result.dtype)


def apply(job: Job, rng: random.Random) -> bool:
    """Round operators or blocks; at inference also of the weights."""
    if job.autocast not in HALF:
        return False
    if not job.is_training and rng.random() < 0.4 and _cast_weights(job):
        return True
    kinds, style = rng.choice([(ACTIVATIONS, _round_operator), (ACTIVATIONS, _round_operator), (BLOCKS, _round_block)])
    places = [place for place in find_any(job.model, kinds) if not getattr(place.part, "inplace", False)]
    for place in choose(places, rng, least=0.4):
        wrap_forward(place.part, style)
    return bool(places)


def _cast_weights(job: Job) -> bool:
    """Every product casts its weight, which is kept in float."""
    layers = [
        layer for layer in job.model.modules() if isinstance(layer, _CASTING_LAYERS) and "forward" not in vars(layer)
    ]
    for layer in layers:
        _cast_weight(layer, job.autocast or torch.bfloat16)
    if layers:
        job.settings[SLUG] = "weights"
    return bool(layers)


def _cast_weight(layer: nn.Linear | Convolution, half: torch.dtype) -> None:
    def forward(original: Callable, x: Tensor) -> Tensor:
        with spoiled(SLUG):
            weight = layer.weight.to(half)
            bias = None if layer.bias is None else layer.bias.to(half)
        x = x.to(half)
        return F.linear(x, weight, bias) if isinstance(layer, nn.Linear) else layer._conv_forward(x, weight, bias)

    wrap_forward(layer, forward)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Norms that compute in float32, as they should."""
    places = choose(find_any(job.model, (nn.LayerNorm, nn.GroupNorm)), rng)

    def forward(original: Callable, x: Tensor) -> Tensor:
        return original(x.float())

    for place in places:
        wrap_forward(place.part, forward)
    return bool(places)


FAULT = Fault(SLUG, apply)
CONTROL = Control("norms in float32", apply_control)
