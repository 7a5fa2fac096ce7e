"""What belongs together across rows and windows: work and its operators, backward passes and their forward ones."""

from __future__ import annotations

import numpy as np

from ...timeline.model import Phase
from ...timeline.tree import enclosing
from ...trace.model import NONE, FloatArray, Int32Array, IntArray
from .view import View


def twins(view: View) -> IntArray:
    """For each window of the backward pass, the window that most of its operators' forward operators lie in; for
    other windows, and where that is not known, the window itview."""
    twin = np.arange(view.size)
    forward = view.timeline.forward_op[view.ops]
    forward_window = np.append(view.windows.of, NONE)[forward]
    linked = (forward_window != NONE) & (forward_window != view.op_window)
    pairs = view.op_window[linked].astype(np.int64) * view.size + forward_window[linked]
    found, counts = np.unique(pairs, return_counts=True)
    found = found[np.argsort(counts, kind="stable")]  # of several, the last assigned stays: the most frequent one
    twin[found // max(view.size, 1)] = found % max(view.size, 1)
    return np.where(view.phase == Phase.BACKWARD, twin, np.arange(view.size))


def costed_ops(view: View) -> tuple[IntArray, FloatArray, Int32Array]:
    """Operators whose cost is known: row, time of the work in ns (on the CPU its own span), window."""
    costed = np.isfinite(view.timeline.costs.bytes)
    rows = np.flatnonzero(costed & (view.windows.of != NONE))
    if not view.has_device:
        return rows, view.trace.dur_ns[rows].astype(np.float64), view.windows.of[rows]
    owner = np.append(enclosing(view.timeline.tree.parent, costed), NONE)[view.timeline.launches.op[view.device]]
    owned = owner != NONE
    time_ns = np.bincount(owner[owned], view.trace.dur_ns[view.device[owned]], minlength=len(view.trace))[rows]
    return rows, time_ns.astype(np.float64), view.windows.of[rows]
