"""What kind of event each row is, from what the trace called it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .model import Category, Int8Array, Int32Array, Thread

CATEGORIES = {
    "cpu_op": Category.CPU_OP,
    "operator": Category.CPU_OP,
    "user_annotation": Category.USER_ANNOTATION,
    "python_function": Category.PYTHON_FUNCTION,
    "runtime": Category.RUNTIME,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "xpu_driver": Category.RUNTIME,
    "glow_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "privateuse1_driver": Category.RUNTIME,
    "kernel": Category.KERNEL,
    "mtia_ccp_events": Category.KERNEL,
    "hpu_op": Category.KERNEL,
    "memcpy": Category.MEMCPY,
    "gpu_memcpy": Category.MEMCPY,
    "memset": Category.MEMSET,
    "gpu_memset": Category.MEMSET,
    "gpu_user_annotation": Category.DEVICE_ANNOTATION,
    "cuda_sync": Category.SYNC,
    "cuda_event": Category.SYNC,
    "overhead": Category.OVERHEAD,
    "trace": Category.PROFILER,
    "cuda_profiler_range": Category.COUNTER_RANGE,
}
"""By the lower-case `cat` of an event."""

LEGACY_HOST = "CPU functions"
LEGACY_DEVICE = re.compile(r"^(?:CUDA|XPU|HIP|PrivateUse1|\w+) functions$")
"""Process ids in traces of the autograd profiler, whose events have no `cat`."""

_ANNOTATION = re.compile(r"^(?:ProfilerStep#|Optimizer\.\w+#|enumerate\(DataLoader\)#)")
"""Annotations of PyTorch's own that old versions filed under `Operator`."""
_MTIA_COPY = re.compile(r"^dma_")
_MTIA_SYNC = re.compile(r"^event_(?:wait|record)$")


def category_of(cat: str) -> Category:
    """The category of events that a trace files under `cat`."""
    return CATEGORIES.get(cat.lower(), Category.OTHER)


def categorize(
    cat: Int32Array,
    cats: Sequence[str],
    name: Int32Array,
    names: Sequence[str],
    thread: Int32Array,
    threads: Sequence[Thread],
) -> Int8Array:
    """`Category` of each row, shape (n,), from its `cat`, name and thread (indices into the three tables)."""
    result = np.array([category_of(c) for c in cats] or [0], dtype=np.int8)[cat]
    _refine(result, result == Category.CPU_OP, name, _matching(names, _ANNOTATION), Category.USER_ANNOTATION)
    mtia = np.array([c.lower() == "mtia_ccp_events" for c in cats] or [False])[cat]
    _refine(result, mtia, name, _matching(names, _MTIA_COPY), Category.MEMCPY)
    _refine(result, mtia, name, _matching(names, _MTIA_SYNC), Category.SYNC)
    bare = np.array([not c for c in cats] or [False])[cat]
    if bare.any():
        result[bare] = np.array([_legacy_category(t) for t in threads], dtype=np.int8)[thread[bare]]
        device = bare & (result == Category.KERNEL)
        _refine(result, device, name, np.array([n.lower().startswith("memcpy") for n in names]), Category.MEMCPY)
        _refine(result, device, name, np.array([n.lower().startswith("memset") for n in names]), Category.MEMSET)
    return result


def _legacy_category(thread: Thread) -> Category:
    if thread.pid == LEGACY_HOST:
        return Category.CPU_OP
    if isinstance(thread.pid, str) and LEGACY_DEVICE.match(thread.pid):
        return Category.KERNEL
    return Category.OTHER


def _matching(names: Sequence[str], pattern: re.Pattern[str]) -> np.ndarray:
    return np.array([pattern.match(name) is not None for name in names] or [False])


def _refine(result: Int8Array, among: np.ndarray, name: Int32Array, chosen: np.ndarray, category: Category) -> None:
    """Set `category` on the rows of `among` whose name is chosen."""
    if among.any() and chosen.any():
        result[among & chosen[name]] = category
