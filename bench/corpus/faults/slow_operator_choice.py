"""slow-operator-choice: an einsum that is slower than the product or the sum that it stands for."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..blocks import AttentionCore
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward, wrap_method
from .shared.operators import parents_named

SLUG = "slow-operator-choice"


def apply(job: Job, rng: random.Random) -> bool:
    """The lengths of queries and keys as products of vectors; or convolutions of single pixels on channels first."""
    attentions = find(job.model, AttentionCore, lambda part: part.head_dim <= 64)
    if attentions and rng.random() < 0.6:
        for place in choose(attentions, rng):
            wrap_method(place.part, "core", _normed_by_einsum)
        return True
    # In channels_last einsum has nothing to copy.
    convs = [] if job.channels_last else find(job.model, nn.Conv2d, _is_pointwise)
    for place in choose(convs, rng, least=0.5):
        _as_einsum(place.part)
    return bool(convs)


def _is_pointwise(conv: nn.Conv2d) -> bool:
    return max(conv.kernel_size) == max(conv.stride) == conv.groups == 1 and "forward" not in vars(conv)


def _normed_by_einsum(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Queries and keys are brought to the length that they have on average (cosine attention)."""
    with spoiled(SLUG):
        squares = [torch.einsum("bhnd,bhnd->bhn", one, one) for one in (q, k)]
    q, k = (_normed(one, square) for one, square in zip((q, k), squares, strict=True))
    return original(q, k, v, bias)


def _normed(x: Tensor, square: Tensor) -> Tensor:
    return (x * torch.rsqrt(square / x.shape[-1] + 1e-6).unsqueeze(-1)).to(x.dtype)


def _as_einsum(conv: nn.Conv2d) -> None:
    """In an order of axes for which einsum copies the dense features; only that copy is spoiled."""

    def forward(original: Callable, x: Tensor) -> Tensor:
        result = torch.einsum("oc,bchw->bohw", conv.weight.flatten(1), x)
        return result if conv.bias is None else result + conv.bias[:, None, None]

    wrap_forward(conv, forward)


def spoils(timeline: Timeline) -> BoolArray:
    """Copies inside of einsums."""
    return parents_named(timeline, "aten::clone", ("aten::einsum",))


def apply_control(job: Job, rng: random.Random) -> bool:
    """Linear layers as einsums that copy nothing."""
    layers = find(job.model, nn.Linear, lambda layer: "forward" not in vars(layer))
    for place in choose(layers, rng):
        _as_fitting_einsum(place.part)
    return bool(layers)


def _as_fitting_einsum(layer: nn.Linear) -> None:
    def forward(original: Callable, x: Tensor) -> Tensor:
        result = torch.einsum("...c,oc->...o", x, layer.weight)
        return result if layer.bias is None else result + layer.bias

    wrap_forward(layer, forward)


FAULT = Fault(SLUG, apply, spoils=spoils)
CONTROL = Control("einsums that copy nothing", apply_control)
