"""What the models are given of a trace, and the version of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from ..timeline.model import Timeline
from ..trace.model import NONE, FloatArray, IntArray
from . import sequence, vocabulary
from .features import schema
from .model import EventSequences, Windows
from .windows import cut

SCHEMA = "+".join(
    (
        schema.SCHEMA,
        f"words-{vocabulary.VERSION}-{vocabulary.SIZE}",
        f"events-{sequence.LENGTH}-" + hashlib.sha256("\n".join(sequence.CHANNELS).encode()).hexdigest()[:12],
    )
)
"""Version of features, vocabulary and events together. A model made with another one is refused."""
_DROPPED_BITS = 4
"""Of the ten that a float16 has for the fraction."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The windows of a trace as the models read them."""

    windows: Windows
    features: FloatArray
    """Shape (windows, features): columns as in `features.schema.FEATURES`, `rounded` as in the data that the models
    learned from."""
    events: EventSequences
    """Of one window of each region, which stands for its like: the network costs most of all."""
    shown: IntArray
    """Shape (regions,): which window each row of `events` is of."""
    row: IntArray
    """Shape (windows,): the row of `events` that stands for each window."""


def make_inputs(timeline: Timeline) -> Inputs:
    """Cut a trace and read its windows."""
    windows = cut(timeline)
    features = rounded(schema.compute(timeline, windows)).astype(np.float64)
    shown, row = _representatives(windows)
    return Inputs(windows, features, sequence.sequences(timeline, _only(windows, shown)), shown, row)


def rounded(features: FloatArray) -> np.ndarray:
    """Features as they are kept and learned from: float16 with the last bits of the fraction 0, which are noise and
    would make a compressed corpus larger by a quarter. Within 0.8 % of what was given; NaN stays."""
    half = features.astype(np.float16)
    bits = half.view(np.uint16).astype(np.int32)
    kept = ((bits + (1 << (_DROPPED_BITS - 1))) >> _DROPPED_BITS << _DROPPED_BITS).astype(np.uint16).view(np.float16)
    return np.where(np.isfinite(kept), kept, half)


def _representatives(windows: Windows) -> tuple[IntArray, IntArray]:
    """For each region its longest window in the step nearest to the middle one, and for each window its region's."""
    if not len(windows):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    middle = windows.step[len(windows) // 2]
    order = np.lexsort((windows.start_ns - windows.end_ns, np.abs(windows.step - middle), windows.region))
    _, first, row = np.unique(windows.region[order], return_index=True, return_inverse=True)
    of_window = np.empty(len(windows), dtype=np.int64)
    of_window[order] = row
    return order[first], of_window


def _only(windows: Windows, chosen: IntArray) -> Windows:
    """Some of the windows, in that order; events of the others have none."""
    number = np.full(len(windows) + 1, NONE, dtype=np.int32)
    number[chosen] = np.arange(len(chosen))
    return replace(
        windows,
        start_ns=windows.start_ns[chosen],
        end_ns=windows.end_ns[chosen],
        step=windows.step[chosen],
        region=windows.region[chosen],
        of=number[windows.of],
    )
