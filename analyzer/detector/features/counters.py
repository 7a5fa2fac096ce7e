"""Hardware counters of the window's kernels, where they were recorded."""

from __future__ import annotations

import numpy as np

from ...timeline.counters import Figure, counted
from ...trace.model import NONE, FloatArray
from ..model import Feature
from .figures import NAN, log_bytes, log_ratio, mean, table
from .links import costed_ops
from .view import View

FEATURES: tuple[Feature, ...] = (
    Feature(
        "counters.tensor", "% of cycles", "Cycles with the tensor cores active, by time: 0 where they should work."
    ),
    Feature("counters.dram_bytes", "log10 bytes", "Bytes to and from the memory."),
    Feature("counters.dram_rate", "% of the device's", "Memory traffic over time."),
    Feature(
        "counters.dram_excess", "log10 1", "Memory traffic over the least that has to move: strided or read again."
    ),
    Feature("counters.l2_hits", "% of accesses", "Hits in the level-2 cache, by time."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    found = counted(view.timeline)
    if not len(found.rows):
        return np.full((view.size, len(FEATURES)), NAN)
    window = view.windows.of[found.rows]
    inside = window != NONE
    rows, values, window = found.rows[inside], found.values[inside], window[inside]
    took_ns = np.maximum(view.trace.dur_ns[rows], 1).astype(np.float64)

    def by_time(figure: Figure) -> FloatArray:
        told = ~np.isnan(values[:, figure])
        weights = took_ns[told]
        return mean(view.sum(window[told], values[told, figure] * weights), view.sum(window[told], weights))

    moved = values[:, Figure.DRAM_BYTES]
    told = ~np.isnan(moved)
    total, time_ns = view.sum(window[told], moved[told]), view.sum(window[told], took_ns[told])
    costed, _, costed_window = costed_ops(view)
    least = view.sum(costed_window, view.timeline.costs.bytes[costed])
    is_measured = view.count(window[told]) > 0
    rate = mean(total, time_ns) / view.timeline.device.memory_gb_per_s
    return table(
        FEATURES,
        tensor=by_time(Figure.TENSOR_PCT),
        dram_bytes=np.where(is_measured, log_bytes(total), NAN),
        dram_rate=np.minimum(100.0 * rate, 1e3),
        dram_excess=log_ratio(total, least),
        l2_hits=by_time(Figure.L2_HIT_PCT),
    )
