"""What the detector works with, as values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import FloatArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a trace's steady steps, in order of step and start. They do not overlap.

    A window is one module call, tagged region, or run of neighbouring operators of one step; on the autograd thread,
    the backward pass of such a window. Arrays have shape (windows,) unless said otherwise.
    """

    start_ns: IntArray
    """Host span; of a trace with device events only, the device span."""
    end_ns: IntArray
    step: Int32Array
    """Index of the step, as in `Steps`."""
    region: Int32Array
    """Index into `regions`. The same part of the program has the same region in every step."""
    regions: tuple[str, ...]
    """For people: "forward: SwinBlock_3", "optimizer", "data", "backward: Conv2d_0 … ReLU_0"."""
    of: Int32Array
    """Shape (n,): the window of each event of the trace, device work counted where it was launched; NONE for none."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Feature:
    """One figure about a window. NaN stands for what the trace does not tell."""

    name: str
    unit: str
    """"%", "log10 us", "log10 GFLOP/s", "1" (a count, log10(1 + x)) and so on."""
    why: str
    """What it tells, in a sentence."""


@dataclass(frozen=True, slots=True)
class EventSequences:
    """The events of each window as the network reads them: at most `length` a window, the most telling kept in order.

    Padding is 0 in `token` and in all figures.
    """

    token: np.ndarray
    """Shape (windows, length), uint16: which operator or kernel, from the fixed vocabulary; 0 is padding, 1 unknown."""
    figures: np.ndarray
    """Shape (windows, length, channels), float16: log durations, gaps, rates, as `sequence.CHANNELS` says."""


@dataclass(frozen=True, slots=True)
class WindowScores:
    """What the detector says of each window. Arrays have shape (windows,) unless said otherwise."""

    windows: Windows
    bad: FloatArray
    """P(any anti-pattern), calibrated, smoothed over the steps of a region."""
    kind: FloatArray
    """Shape (windows, kinds): P(each anti-pattern)."""
    kinds: tuple[str, ...]
    """Slugs."""
    is_unknown: np.ndarray
    """Bool: far from everything that the detector has learned from; its probabilities say little."""
    is_single: np.ndarray
    """Bool: bad in this step only, its region is healthy in the others."""
    each_bad: FloatArray
    """P(any anti-pattern) of each window by itself, not smoothed."""
    threshold: float
    """P(bad) from which a window counts as bad."""
    usual_bad: float
    """The share of the windows learned from that are bad: what could be said of a window before looking at it."""
    usual_kind: FloatArray
    """Shape (kinds,): the share that shows each anti-pattern."""
