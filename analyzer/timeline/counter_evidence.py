"""What hardware counters say of the kernels that a finding is about."""

from __future__ import annotations

import numpy as np

from ..findings import Evidence
from ..trace.model import NONE, Category, FloatArray, IntArray
from .counters import Counted, Figure, counted
from .model import Timeline
from .select import events_of, in_typical_step, launched_by, outermost, value_per_step


def counter_evidence(timeline: Timeline, rows: IntArray) -> tuple[Evidence, ...]:
    """DRAM traffic, use of the tensor cores and L2 hits of the kernels among `rows`, or launched by them.

    Nothing where fewer than all of them have the figure: a part of a sum is no evidence.
    """
    found = counted(timeline)
    kernels = _kernels(timeline, rows, found)
    if not len(kernels):
        return ()
    values = found.values[np.searchsorted(found.rows, kernels)]
    events = events_of(timeline, in_typical_step(timeline, kernels))
    weights = timeline.trace.dur_ns[kernels].astype(np.float64)
    evidence: list[Evidence] = []
    if (moved := _all_known(values[:, Figure.DRAM_BYTES])) is not None:
        megabytes = value_per_step(timeline, kernels, moved) / 1e6
        evidence.append(Evidence("dram", "measured DRAM traffic per step", round(megabytes, 3), "MB", events))
    if (tensor := _all_known(values[:, Figure.TENSOR_PCT])) is not None and weights.sum() > 0:
        busy = float(np.average(tensor, weights=weights))
        evidence.append(Evidence("tensor-cores", "measured tensor core activity", round(busy, 1), "%", events))
    elif (count := _all_known(values[:, Figure.TENSOR_INSTRUCTIONS])) is not None:
        issued = value_per_step(timeline, kernels, count)
        evidence.append(
            Evidence("tensor-cores", "measured tensor core instructions per step", round(issued), "", events)
        )
    if (hits := _all_known(values[:, Figure.L2_HIT_PCT])) is not None and weights.sum() > 0:
        share = float(np.average(hits, weights=weights))
        evidence.append(Evidence("l2", "measured L2 hits", round(share, 1), "%", events))
    return tuple(evidence)


def _kernels(timeline: Timeline, rows: IntArray, found: Counted) -> IntArray:
    """The kernels of steady steps that are meant, if every one has counters; else none."""
    nothing = np.empty(0, dtype=np.int64)
    if not len(found.rows) or not len(rows):
        return nothing
    category = timeline.trace.cat[rows]
    device = rows[category == Category.KERNEL]
    hosts = outermost(timeline, rows[(category == Category.CPU_OP) | (category == Category.PYTHON_FUNCTION)])
    launched = np.concatenate([nothing, *launched_by(timeline, hosts)])
    kernels = np.unique(np.concatenate([device, launched[timeline.trace.cat[launched] == Category.KERNEL]]))
    kernels = kernels[timeline.steps.of[kernels] != NONE]
    kernels = kernels[timeline.steps.are_steady(kernels)]
    return kernels if len(kernels) and np.isin(kernels, found.rows).all() else nothing


def _all_known(values: FloatArray) -> FloatArray | None:
    return None if np.isnan(values).any() else values
