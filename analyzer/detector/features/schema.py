"""All features of a window, in their order; the order and the names are a model's contract with its input."""

from __future__ import annotations

import hashlib

import numpy as np

from ...timeline.model import Timeline
from ...trace.model import FloatArray
from ..model import Feature, Windows
from . import (
    attention,
    communication,
    compilation,
    context,
    convolutions,
    cost,
    counters,
    efficiency,
    idle,
    launches,
    memory,
    operators,
    python,
    repetition,
    tensors,
    transfers,
)
from .links import twins
from .view import View

GROUPS = (
    cost,
    launches,
    idle,
    efficiency,
    convolutions,
    attention,
    operators,
    tensors,
    repetition,
    transfers,
    memory,
    python,
    compilation,
    communication,
    counters,
    context,
)
"""Modules with `FEATURES` and `compute(view)`, which gives a column for each of them."""

FEATURES: tuple[Feature, ...] = tuple(feature for group in GROUPS for feature in group.FEATURES)
NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)

FORWARD_ONLY = (convolutions, attention)
"""Groups that look at forward operators: a window of the backward pass has the figures of the forward window whose
operators it differentiates."""

_REVISION = 2
"""Goes up when a feature of the same name comes to mean something else."""

SCHEMA = (
    f"features-{_REVISION}-"
    + hashlib.sha256("\n".join(f"{feature.name} [{feature.unit}]" for feature in FEATURES).encode()).hexdigest()[:12]
)
"""Version of the features: changes with any name, unit, or place in the order. A model of another one is refused."""


def compute(timeline: Timeline, windows: Windows) -> FloatArray:
    """Shape (windows, features): every feature of every window; finite, or NaN where the trace does not tell.

    Magnitudes are such that float16 holds them.
    """
    if not len(windows):
        return np.empty((0, len(FEATURES)))
    view = View(timeline, windows)
    forward = twins(view)
    values = [group.compute(view) for group in GROUPS]
    return np.column_stack(
        [of[forward] if group in FORWARD_ONLY else of for group, of in zip(GROUPS, values, strict=True)]
    )
