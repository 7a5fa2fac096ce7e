"""redundant-copy: a tensor is copied, and what reads the copy could as well read the tensor."""

from __future__ import annotations

import random
from collections.abc import Callable

from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, wrap_forward
from .shared.parts import BLOCKS, LAYERS, find_any

SLUG = "redundant-copy"


def _clone_input(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
    with spoiled(SLUG):
        x = x.clone()
    return original(x, *others)


def _clone_output(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
    result = original(x, *others)
    with spoiled(SLUG):
        return result.clone()


def _clone_both(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
    with spoiled(SLUG):
        x = x.clone()
    result = original(x, *others)
    with spoiled(SLUG):
        return result.clone()


def _keep_original(original: Callable, x: Tensor, *others: Tensor | None) -> Tensor:
    """A copy to be safe, of what nobody changes; also detached ones for a debugger."""
    with spoiled(SLUG):
        kept = x.detach().clone()
    result = original(x, *others)
    with spoiled(SLUG):
        del kept
        return result.clone()


STYLES = (_clone_input, _clone_output, _clone_both, _keep_original)


def apply(job: Job, rng: random.Random) -> bool:
    """Round some blocks or layers."""
    places = find_any(job.model, rng.choice([BLOCKS, BLOCKS, LAYERS, (nn.Linear, nn.Conv2d, nn.Conv3d)]))
    places = places or find_any(job.model, (*LAYERS, nn.Conv3d))
    style = rng.choice(STYLES)
    for place in choose(places, rng, least=0.5):
        wrap_forward(place.part, style)
    return bool(places)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Copies that are written into, so that the tensor itself stays as it is for the others that read it."""
    places = find_any(job.model, (*LAYERS, nn.Conv3d))
    for place in choose(places, rng, least=0.1):
        wrap_forward(place.part, _write_into_copy)
    return bool(places)


def _write_into_copy(original: Callable, x: Tensor) -> Tensor:
    written = x.clone()
    written[:, 0] *= 0.99
    return original(written)


FAULT = Fault(SLUG, apply)
CONTROL = Control("copies that are written into", apply_control)
