"""padding-waste: sequences padded far beyond their length, and the padding computed."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..blocks import TransformerBlock
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward

SLUG = "padding-waste"


def apply(job: Job, rng: random.Random) -> bool:
    """Some blocks without windows run on as much padding as there are tokens, or up to three times as much."""
    places = choose(find(job.model, TransformerBlock, lambda part: not part.window), rng)
    factor = rng.choice([1, 2, 3])

    def forward(original: Callable, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None:
            return original(x, mask)
        with spoiled(SLUG):
            length = x.shape[1]
            padded = F.pad(x, (0, 0, 0, factor * length))
            lengths = torch.full((len(x), 1, 1, 1), length, device=x.device)
            valid = torch.arange(padded.shape[1], device=x.device) < lengths
            return original(padded, valid)[:, :length]

    for place in places:
        wrap_forward(place.part, forward)
    return bool(places)


FAULT = Fault(SLUG, apply, excludes=frozenset(("masked-window-as-full",)))
