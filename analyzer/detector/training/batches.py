"""Batches of whole traces for the network, spoiled on purpose so that it learns to do without what a trace may lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...trace.model import BoolArray, IntArray
from .. import vocabulary
from ..sequence import CHANNELS
from .dataset import Dataset
from .network import usual_of

_FROM_SHAPES = (
    "work", "moved", "rate", "bandwidth", "roof", "elements", "tensors", "half", "single", "double", "whole", "strided",
    "channels_last", "unaligned", "shapes",
)  # fmt: skip
_TIMES = ("duration", "gap", "idle", "queue")
_RATES = ("rate", "bandwidth")
_WITHOUT_SHAPES = 0.15
"""Share of the batches' traces that lose what comes from shapes; and so on."""
_WITHOUT_FRAMES = 0.15
_DEVICE_ONLY = 0.05
_UNKNOWN_WORD = 0.03
"""Share of the events whose word becomes unknown."""
_WITHOUT_FEATURE = 0.05
"""Share of the features that are missing at random, beside those that traces with less recorded lack."""
_FEATURE_SHIFT = 0.5
"""Of what is added to each feature of a trace, in scales of the feature: another machine, another program."""
_SPEED_SPREAD = 0.15
"""Of the factor, in log10, by which all times of a trace are stretched: another machine."""
_AT = {name: channel for channel, name in enumerate(CHANNELS)}


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows of some traces. Arrays have shape (windows, ...)."""

    windows: IntArray
    """Numbers in the dataset."""
    token: np.ndarray
    """int64."""
    figures: np.ndarray
    """float32."""
    features: np.ndarray
    """float32, NaN for what is missing."""
    place: IntArray
    """Which trace of the batch each window is of, 0 to len(traces) - 1."""
    traces: IntArray
    """Numbers in the dataset."""


class Batches:
    """Draws batches: in each epoch one variant of each run, of that one step."""

    def __init__(self, dataset: Dataset, chosen: BoolArray, seed: int, traces_each: int = 20) -> None:
        self._dataset = dataset
        self._random = np.random.default_rng(seed)
        self._traces_each = traces_each
        windows = np.flatnonzero(chosen)
        _, self._scale = usual_of(dataset.features[windows].astype(np.float32))
        order = windows[np.lexsort((dataset.step[windows], dataset.trace[windows]))]
        trace, step = dataset.trace[order], dataset.step[order]
        begins = np.flatnonzero(np.diff(trace, prepend=-1).astype(bool) | np.diff(step, prepend=-1).astype(bool))
        self._pieces = np.split(order, begins[1:])  # one for each step of each trace
        self._run = dataset.run[trace[begins]]

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-len(np.unique(self._run)) // self._traces_each)

    def epoch(self) -> Iterator[Batch]:
        """The batches of one epoch."""
        order = self._random.permutation(len(self._pieces))
        _, first = np.unique(self._run[order], return_index=True)
        drawn = self._random.permutation(order[first])
        for at in range(0, len(drawn), self._traces_each):
            yield self._batch(np.concatenate([self._pieces[piece] for piece in drawn[at : at + self._traces_each]]))

    def _batch(self, windows: IntArray) -> Batch:
        traces, place = np.unique(self._dataset.trace[windows], return_inverse=True)
        token = self._dataset.token[windows].astype(np.int64)
        figures = self._dataset.figures[windows].astype(np.float32)
        features = self._dataset.features[windows].astype(np.float32)
        self._spoil(token, figures, place, len(traces))
        shift = self._random.normal(0.0, _FEATURE_SHIFT, (len(traces), features.shape[1]))
        features += (shift * self._scale)[place]
        features[self._random.random(features.shape) < _WITHOUT_FEATURE] = np.nan
        return Batch(windows, token, figures, features, place, traces)

    def _spoil(self, token: np.ndarray, figures: np.ndarray, place: IntArray, traces: int) -> None:
        """Take away, in place, what some traces lack."""
        draw = self._random.random((3, traces)) < np.array([[_WITHOUT_SHAPES], [_WITHOUT_FRAMES], [_DEVICE_ONLY]])
        no_shapes, no_frames, device_only = draw[:, place]
        stretch = self._random.normal(0.0, _SPEED_SPREAD, traces)[place, None]
        for names, sign in ((_TIMES, 1.0), (_RATES, -1.0)):
            for name in names:
                column = figures[:, :, _AT[name]]
                column[...] = np.maximum(column + sign * stretch * (column > 0), 0.0)
        for name in _FROM_SHAPES:
            figures[no_shapes, :, _AT[name]] = 0.0
        gone = vocabulary.is_frame(token) & no_frames[:, None]
        on_device = vocabulary.is_device(token)
        gone |= ~on_device & (device_only & on_device.any(axis=1))[:, None]
        token[(self._random.random(token.shape) < _UNKNOWN_WORD) & (token != vocabulary.PADDING)] = vocabulary.UNKNOWN
        token[gone] = vocabulary.PADDING
        figures[gone] = 0.0
