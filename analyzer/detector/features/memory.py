"""The allocator: what is allocated in a window, what the driver is asked for, and how the total grows."""

from __future__ import annotations

import re

import numpy as np

from ...timeline.memory import MemoryUse, device_memory_bytes, memory_uses
from ...trace.model import NONE, FloatArray
from ..model import Feature
from .figures import NAN, known, log_bytes, log_count, log_ratio, pct, table
from .view import View

_DRIVER_MALLOC = re.compile(r"^(cuda|hip)(Malloc|MallocAsync|MemCreate)$|^cuMem(Alloc|Create)")
_DRIVER_FREE = re.compile(r"^(cuda|hip)(Free|FreeAsync)$|^cuMem(Free|Release|Unmap)")

FEATURES: tuple[Feature, ...] = (
    Feature("memory.allocations", "1 (log10(1 + x))", "Allocations from the caching allocator."),
    Feature("memory.allocations_per_call", "log10 1", "Allocations for each operator called: temporaries."),
    Feature("memory.bytes", "log10 bytes", "Bytes allocated, freed again or not."),
    Feature("memory.kept", "% of bytes", "Allocated bytes that outlive the window: saved for backward, or leaked."),
    Feature(
        "memory.growth", "% of the peak per step", "Rise of the allocated total from step to step: something is kept."
    ),
    Feature("memory.peak", "% of the device's", "Highest allocated total of the window."),
    Feature("memory.reserved", "% of the device's", "Highest reserved total: near 100 the allocator must retry."),
    Feature("memory.driver_mallocs", "1 (log10(1 + x))", "Allocations from the driver in a steady step: none are due."),
    Feature("memory.driver_frees", "1 (log10(1 + x))", "Memory given back to the driver: the cache was emptied."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    mallocs, frees = view.named(view.runtime, _DRIVER_MALLOC), view.named(view.runtime, _DRIVER_FREE)
    window = view.windows.of[view.runtime]
    return table(
        FEATURES,
        driver_mallocs=known(view.has_launches, log_count(view.sum(window, mallocs))),
        driver_frees=known(view.has_launches, log_count(view.sum(window, frees))),
        **_records(view),
    )


def _records(view: View) -> dict[str, FloatArray | float]:
    """Columns from the allocator's own records; NaN where the trace has none."""
    uses = memory_uses(view.timeline)
    if not uses or not view.size:
        names = [feature.name.rpartition(".")[2] for feature in FEATURES]
        driver = ("driver_mallocs", "driver_frees")
        return {name: NAN for name in names if name not in driver}
    use = max(uses, key=lambda one: (one.device != NONE, len(one.ts_ns)))
    memory = view.trace.memory
    window, inside = _window_at(view, use.ts_ns)
    change = use.change_bytes[inside].astype(np.float64)
    window = window[inside]
    grown, shrunk = np.maximum(change, 0), np.maximum(-change, 0)
    allocated, count = view.sum(window, grown), view.count(window[change > 0])
    total_bytes = float(device_memory_bytes(view.timeline, use.device)) if use.device != NONE else 0.0
    absolute = use.is_absolute and total_bytes > 0
    reserved = memory.total_reserved_bytes[memory.device == use.device][inside].astype(np.float64)
    peak = view.largest(window, np.maximum(use.allocated_bytes[inside], 0).astype(np.float64))
    reserved_peak = view.largest(window, np.maximum(reserved, 0))
    return {
        "allocations": log_count(count),
        "allocations_per_call": log_ratio(count, view.call_count),
        "bytes": log_bytes(allocated),
        "kept": pct(np.maximum(allocated - view.sum(window, shrunk), 0), allocated),
        "growth": _growth(view, use),
        "peak": known(absolute, np.where(peak > 0, 100 * peak / max(total_bytes, 1), NAN)),
        "reserved": known(absolute, np.where(reserved_peak > 0, 100 * reserved_peak / max(total_bytes, 1), NAN)),
    }


def _window_at(view: View, moments_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The window in whose host span each moment lies, and whether it lies in one."""
    order = np.argsort(view.windows.start_ns, kind="stable")
    at = np.searchsorted(view.windows.start_ns[order], moments_ns, side="right") - 1
    window = order[np.maximum(at, 0)]
    return window, (at >= 0) & (moments_ns < view.windows.end_ns[window])


def _growth(view: View, use: MemoryUse) -> FloatArray | float:
    """Median rise of the allocated total from one steady step's end to the next one's, of the highest total."""
    steps = view.timeline.steps
    ends = steps.end_ns[steps.steady]
    highest = float(use.allocated_bytes.max(initial=0))
    if len(ends) < 3 or highest <= 0:
        return NAN
    rise = float(np.median(np.diff(use.at(ends))))
    return np.full(view.size, np.clip(100.0 * rise / highest, -100, 100))
