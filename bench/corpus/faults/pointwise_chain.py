"""pointwise-chain: a run of elementwise operators over one tensor, each its own pass over memory."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, wrap_forward
from .shared.parts import BLOCKS, LAYERS, find_any

SLUG = "pointwise-chain"
Chain = Callable[[Tensor, nn.ParameterList], Tensor]


def _modulated(x: Tensor, learned: nn.ParameterList) -> Tensor:
    """Scaled, shifted, gated, each by a number that is learned from nothing."""
    scale, shift, gate = learned
    return (x * (1 + scale) + shift) * (1 + gate) + gate * x - shift


def _bounded(x: Tensor, learned: nn.ParameterList) -> Tensor:
    """Soft bounds far beyond what occurs, mixed in by a learned share."""
    scale, shift, gate = learned
    bounded = 50 * torch.tanh(x / 50)
    return x + gate * (bounded - x) * (1 + scale) + shift


def _companded(x: Tensor, learned: nn.ParameterList) -> Tensor:
    """A root that keeps the sign, and back."""
    scale, shift, _ = learned
    root = torch.sign(x) * torch.sqrt(x.abs() + 1e-6)
    return torch.sign(root) * (root * root - 1e-6) * (1 + scale) + shift


def _denormalised(x: Tensor, learned: nn.ParameterList) -> Tensor:
    """To bytes' range and back, with contrast and brightness in between."""
    contrast, brightness, _ = learned
    pixels = x * 255.0 + 128.0
    pixels = (pixels - 128.0) * (1 + contrast) + 128.0 + brightness
    return (pixels - 128.0) / 255.0


CHAINS: tuple[Chain, ...] = (_modulated, _bounded, _companded, _denormalised)


def apply(job: Job, rng: random.Random) -> bool:
    """What comes out of some layers or blocks passes through a chain once to three times."""
    places = find_any(job.model, rng.choice([BLOCKS, LAYERS])) or find_any(job.model, (*LAYERS, nn.Conv3d))
    chain, times = rng.choice(CHAINS), rng.choice([1, 1, 2, 3])
    for place in choose(places, rng, least=0.2):
        _pass_through(place.part, chain, times)
    return bool(places)


def _pass_through(part: nn.Module, chain: Chain, times: int) -> None:
    learned = nn.ParameterList(nn.Parameter(torch.zeros(1)) for _ in range(3))
    part.learned = learned

    def forward(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
        result = original(x, *others)
        with spoiled(SLUG):
            for _ in range(times):
                result = chain(result, learned).to(result.dtype)
            return result

    wrap_forward(part, forward)


def apply_control(job: Job, rng: random.Random) -> bool:
    """One factor after some layers, which is no chain."""
    places = find_any(job.model, (*LAYERS, nn.Conv3d))
    for place in choose(places, rng, least=0.1):
        _scale_once(place.part)
    return bool(places)


def _scale_once(part: nn.Module) -> None:
    gain = nn.Parameter(torch.ones(1))
    part.gain = gain

    def forward(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
        result = original(x, *others)
        return (result * gain).to(result.dtype)

    wrap_forward(part, forward)


FAULT = Fault(SLUG, apply)
CONTROL = Control("one factor after a layer", apply_control)
