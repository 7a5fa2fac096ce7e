"""What the models are given of a trace, and the version of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..timeline.model import Timeline
from ..trace.model import FloatArray
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


@dataclass(frozen=True, slots=True)
class Inputs:
    """The windows of a trace as the models read them."""

    windows: Windows
    features: FloatArray
    """Shape (windows, features): columns as in `features.schema.FEATURES`, rounded to half precision, as in the data
    that the models learned from."""
    events: EventSequences


def make_inputs(timeline: Timeline) -> Inputs:
    """Cut a trace and read its windows."""
    windows = cut(timeline)
    features = schema.compute(timeline, windows).astype(np.float16).astype(np.float64)
    return Inputs(windows, features, sequence.sequences(timeline, windows))
