"""layout-broken-midway: an operator turns a channels_last tensor back to NCHW, and the next convolution back."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward
from .shared.parts import ACTIVATIONS, find_any

SLUG = "layout-broken-midway"


def _is_channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.shape[1] > 1 and x.stride(1) == 1 and max(x.shape[2:]) > 1


def _dense(x: Tensor) -> Tensor:
    return x.contiguous()


def _flattened(x: Tensor) -> Tensor:
    """There and back over flattened places, as older code does for statistics."""
    return x.reshape(len(x), -1).view(x.shape)


def _shuffled(x: Tensor) -> Tensor:
    """Groups of channels swapped twice; each swap is written in NCHW."""
    groups = 2 if x.shape[1] % 2 == 0 else 1
    swapped = x.contiguous().unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
    return swapped.unflatten(1, (-1, groups)).transpose(1, 2).flatten(1, 2)


def apply(job: Job, rng: random.Random) -> bool:
    """Before some convolutions or activations between them; the copy back to channels_last is marked, too."""
    if not job.channels_last or len(find(job.model, nn.Conv2d)) < 2:
        return False
    turn = rng.choice([_dense, _dense, _flattened, _shuffled])
    kinds = rng.choice([(nn.Conv2d,), ACTIVATIONS])
    places = [place for place in find_any(job.model, kinds) if not getattr(place.part, "inplace", False)]

    def forward(original: Callable, x: Tensor) -> Tensor:
        if not _is_channels_last(x):
            return original(x)
        with spoiled(SLUG):
            x = turn(x)
            if kinds == ACTIVATIONS:
                return original(x).contiguous(memory_format=torch.channels_last)
            x = x.contiguous(memory_format=torch.channels_last)
        return original(x)

    for place in choose(places, rng, least=0.2):
        wrap_forward(place.part, forward)
    return bool(places)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Checks that the layout is kept: `contiguous` of the layout that the tensor has copies nothing."""
    places = choose(find(job.model, nn.Conv2d), rng)

    def forward(original: Callable, x: Tensor) -> Tensor:
        kept = torch.channels_last if _is_channels_last(x) else torch.contiguous_format
        return original(x.contiguous(memory_format=kept))

    for place in places:
        wrap_forward(place.part, forward)
    return bool(places)


FAULT = Fault(SLUG, apply, excludes=frozenset(("channels-last-missing",)))
CONTROL = Control("contiguous that copies nothing", apply_control)
