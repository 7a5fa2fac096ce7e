"""Which steps tell nothing about steady running: library start-up, autotuning, compilation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, BoolArray, Category, FloatArray, IntArray, Trace
from .columns import is_named, median
from .intervals import covered_ns, joined, union

_START_UP_CALL = re.compile(
    r"(cuda|hip)(Stream|Event)Create|(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc)(Async|Managed|FromPoolAsync)?$"
    r"|(cuda|hip)(GetDevice(Count|Properties)|DeviceGetStreamPriorityRange|MemGetInfo)"
    r"|(cu|hip)(ModuleLoad|LibraryLoad|Init$)|cu(da)?EventElapsedTime"
)
"""Calls that a steady step hardly makes: they create what later steps reuse."""
_LAUNCH_CALL = re.compile(r"LaunchKernel|LaunchCooperativeKernel")
_SLOW_LAUNCH_NS = 1_000_000
"""A launch takes microseconds. One this long, with the device idle meanwhile, loads code first."""
_COMPILATION = re.compile(
    r"torch/_dynamo/convert_frame\.py.*: _?compile|torch/_inductor/compile_fx\.py|^_compile\.|^compile_fx|^entire_frame"
)

_COLD_SHARE = 0.2
"""Share of start-up work that makes a step a cold one."""
_SLOWER = 1.2
"""A cold step is also slower than the later ones by this factor."""
_OUTLIER = 2.0
"""A first step slower than every later one by this factor is left out, whatever the reason."""


@dataclass(frozen=True, slots=True)
class ColdStart:
    """`is_warmup` has shape (steps,). `is_cold`: no steady step is left over, all that there is starts up."""

    is_warmup: BoolArray
    is_cold: bool


def find_cold_start(trace: Trace, start_ns: IntArray, end_ns: IntArray) -> ColdStart:
    """Mark the leading steps that start things up. The last step is never marked: something must remain."""
    duration = end_ns - start_ns
    share = _start_up_share(trace, start_ns, end_ns)
    is_warmup = np.zeros(len(duration), dtype=bool)
    for step in range(len(duration) - 1):
        later = duration[step + 1 :]
        is_start_up = share[step] > _COLD_SHARE and duration[step] > _SLOWER * median(later)
        is_outlier = len(later) > 1 and duration[step] > _OUTLIER * later.max()
        if not (is_start_up or is_outlier):
            break
        is_warmup[step] = True
    steady = np.flatnonzero(~is_warmup)
    # Several steps that all allocate and free are a habit of the program, not its start.
    is_cold = len(steady) == 1 and bool(share[steady[0]] > _COLD_SHARE)
    return ColdStart(is_warmup, is_cold)


def _start_up_share(trace: Trace, start_ns: IntArray, end_ns: IntArray) -> FloatArray:
    """Share of each step spent starting up while the device had nothing to do."""
    busy_rows = trace.rows(*DEVICE_CATEGORIES)
    busy = union(trace.ts_ns[busy_rows], trace.end_ns[busy_rows])
    calls, ranges = trace.rows(Category.RUNTIME), trace.rows(Category.PYTHON_FUNCTION, Category.USER_ANNOTATION)
    slow_calls = calls[trace.dur_ns[calls] > _SLOW_LAUNCH_NS]
    rows = np.concatenate(
        [
            calls[is_named(trace, calls, _START_UP_CALL.search)],
            slow_calls[is_named(trace, slow_calls, _LAUNCH_CALL.search)],
            ranges[is_named(trace, ranges, _COMPILATION.search)],
        ]
    )
    start_up = union(trace.ts_ns[rows], trace.end_ns[rows])
    alone_ns = covered_ns(joined(start_up, busy), start_ns, end_ns) - covered_ns(busy, start_ns, end_ns)
    return alone_ns / np.maximum(end_ns - start_ns, 1)
