"""fallback-kernel: convolutions in reference code, as the fast library takes no such type or is switched off."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job
from ..marks import act, spoiled
from ..surgery import choose, find, wrap_forward

SLUG = "fallback-kernel"


def _without_library(layer: nn.Conv2d, original: Callable, x: Tensor) -> Tensor:
    """Switched off, as for results that are the same everywhere; a device has no kernel then."""
    with spoiled(SLUG), act("fallback"), torch.backends.mkldnn.flags(enabled=False):
        return original(x)


def _in_double(layer: nn.Conv2d, original: Callable, x: Tensor) -> Tensor:
    """In a type for which there are only slow kernels."""
    with spoiled(SLUG), torch.autocast(x.device.type, enabled=False):
        bias = None if layer.bias is None else layer.bias.double()
        return layer._conv_forward(x.double(), layer.weight.double(), bias).to(x.dtype)


def apply(job: Job, rng: random.Random) -> bool:
    """Some convolutions with kernels of several pixels."""
    style = rng.choice([_without_library, _without_library, _in_double])
    spatial = find(job.model, nn.Conv2d, lambda conv: max(conv.kernel_size) > 1 and "forward" not in vars(conv))
    for place in choose(spatial, rng, least=0.2):
        _wrap(place.part, style)
    return bool(spatial)


def _wrap(layer: nn.Conv2d, style: Callable[[nn.Conv2d, Callable, Tensor], Tensor]) -> None:
    wrap_forward(layer, lambda original, x: style(layer, original, x))


def apply_control(job: Job, rng: random.Random) -> bool:
    """Dilated convolutions, which the library takes."""
    places = find(job.model, nn.Conv2d, _can_dilate)
    for place in choose(places, rng):
        conv = place.part
        conv.dilation, conv.padding = (2, 2), (2, 2)
    return bool(places)


def _can_dilate(conv: nn.Conv2d) -> bool:
    return conv.kernel_size == (3, 3) and conv.padding == (1, 1) and conv.dilation == (1, 1) and conv.groups == 1


FAULT = Fault(SLUG, apply)
CONTROL = Control("dilated convolutions of the library", apply_control)
