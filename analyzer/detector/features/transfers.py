"""Copies between host and device, and work that stays on the host beside a device."""

from __future__ import annotations

import re

import numpy as np

from ...timeline.columns import is_among
from ...timeline.model import KernelClass
from ...trace.model import NONE, FloatArray
from ..model import Feature
from .families import FAMILIES
from .figures import known, log_bytes, log_count, pct, table
from .inputs import Kind
from .view import View

_K = KernelClass
_DIRECTIONS = (
    ("htod", _K.MEMCPY_HTOD, "host to device"),
    ("dtoh", _K.MEMCPY_DTOH, "device to host"),
    ("dtod", _K.MEMCPY_DTOD, "device to device"),
)
_SMALL_BYTES = 64 << 10
_PAGEABLE = re.compile(r"Pageable", re.IGNORECASE)
_WAIT = re.compile(r"Synchronize")

FEATURES: tuple[Feature, ...] = (
    *(Feature(f"transfers.{name}", "1 (log10(1 + x))", f"Copies, {way}.") for name, _, way in _DIRECTIONS),
    *(Feature(f"transfers.{name}_bytes", "log10 bytes", f"Bytes, {way}.") for name, _, way in _DIRECTIONS),
    *(Feature(f"transfers.{name}_time", "% of the device time", f"Time, {way}.") for name, _, way in _DIRECTIONS),
    Feature("transfers.small", "1 (log10(1 + x))", "Copies to or from the host under 64 KB: one would do."),
    Feature(
        "transfers.pageable_htod", "% of copies", "Copies to the device from pageable memory: staged and waited for."
    ),
    Feature("transfers.pageable_dtoh", "% of copies", "Copies to the host into pageable memory."),
    Feature("transfers.blocking", "% of copies", "Copies to or from the host that a synchronisation follows directly."),
    Feature("transfers.index_htod", "1 (log10(1 + x))", "Copies to the device for an index that lies on the host."),
    Feature("transfers.float_images", "% of HtoD bytes", "Bytes of fp32 and fp64 images or volumes: 8 bits would do."),
    Feature("transfers.host_work", "% of the host span", "Host time in computing operators that launch nothing."),
    Feature("transfers.host_constants", "1 (log10(1 + x))", "Constants and coordinates made on the host."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    told = view.has_device
    moves = [view.kernel_class == work_class for _, work_class, _ in _DIRECTIONS]
    rows = [view.device[which] for which in moves]
    windows = [view.device_window[which] for which in moves]
    counts = [view.count(window) for window in windows]
    sizes = [np.maximum(view.trace.size_bytes[one], 0).astype(np.float64) for one in rows]
    totals = [view.sum(window, size) for window, size in zip(windows, sizes, strict=True)]
    times = [view.sum(window, view.trace.dur_ns[one]) for window, one in zip(windows, rows, strict=True)]
    host_window, host_sizes = np.concatenate(windows[:2]), np.concatenate(sizes[:2])
    host_rows = np.concatenate(rows[:2])
    has_sizes = told and bool(len(host_sizes) == 0 or (host_sizes > 0).any())
    names = [name for name, _, _ in _DIRECTIONS]
    is_small = (host_sizes > 0) & (host_sizes < _SMALL_BYTES)
    pageable = [pct(view.sum(w, view.named(r, _PAGEABLE)), c) for w, r, c in zip(windows, rows, counts, strict=True)]
    return table(
        FEATURES,
        **{name: known(told, log_count(count)) for name, count in zip(names, counts, strict=True)},
        **{f"{name}_bytes": known(has_sizes, log_bytes(total)) for name, total in zip(names, totals, strict=True)},
        **{f"{name}_time": known(told, pct(time, view.device_ns)) for name, time in zip(names, times, strict=True)},
        small=known(has_sizes, log_count(view.sum(host_window, is_small))),
        pageable_htod=known(told, pageable[0]),
        pageable_dtoh=known(told, pageable[1]),
        blocking=known(
            view.has_launches, pct(view.sum(host_window, _is_waited_for(view, host_rows)), counts[0] + counts[1])
        ),
        **_payload(view, rows[0], sizes[0]),
        **_on_host(view),
    )


def _is_waited_for(view: View, copies: np.ndarray) -> np.ndarray:
    """For each copy, whether the next runtime call of the thread that launched it waits for the device."""
    trace = view.trace
    order = view.runtime[np.lexsort((trace.ts_ns[view.runtime], trace.thread[view.runtime]))]
    waits = np.zeros(len(trace) + 1, dtype=np.bool_)
    next_waits = np.append(view.named(order, _WAIT)[1:] & (trace.thread[order][1:] == trace.thread[order][:-1]), False)
    waits[order] = next_waits[: len(order)]
    return waits[view.timeline.launches.runtime[copies]]


def _payload(view: View, copies: np.ndarray, sizes: FloatArray) -> dict[str, FloatArray]:
    """Columns about what is copied to the device, by the operator that copies."""
    window, op = view.windows.of[copies], view.timeline.launches.op[copies]
    by_op = op != NONE
    window, op, sizes = window[by_op], op[by_op].astype(np.int64), sizes[by_op]
    # `copy_` is told the device's tensor first; both have the same sizes, and a copy changes no type on its way.
    kind, axes = view.input_facts.column("kind", op), view.input_facts.column("axes", op)
    total = view.sum(window, sizes)
    index = view.outermost_family(op)
    shaped = view.has_device and view.has_shapes

    def share(which: np.ndarray) -> FloatArray:
        return known(shaped, pct(view.sum(window, sizes * which), total))

    return {
        "index_htod": known(
            view.has_device and view.has_ops,
            log_count(view.sum(window, view.are_of(index, "index", "index put"))),
        ),
        "float_images": share(((kind == Kind.FP32) | (kind == Kind.FP64)) & (axes >= 4)),
    }


def _on_host(view: View) -> dict[str, FloatArray]:
    """Columns about operators that launch nothing though there is a device, by name."""
    told = view.has_launches and view.has_ops
    tree = view.timeline.tree
    has_op_inside = np.zeros(len(view.trace) + 1, dtype=np.bool_)
    has_op_inside[tree.parent[view.ops]] = True
    idle = ~has_op_inside[view.ops] & ~is_among(view.ops, view.timeline.launches.op[view.timeline.device_rows])
    computes = _COMPUTES[view.family]
    makes = view.are_of(view.family, "constant", "range", "fill")
    own_ns = view.trace.dur_ns[view.ops]
    return {
        "host_work": known(told, pct(view.sum(view.op_window, own_ns * (idle & computes)), view.host_ns)),
        "host_constants": known(told, log_count(view.sum(view.op_window, idle & makes))),
    }


_COMPUTES = np.array([family.work not in (_K.OTHER, _K.COMMUNICATION) for family in FAMILIES])
