"""How an average steady step divides."""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, BoolArray, Category, FloatArray, Int8Array, IntArray, Trace
from .columns import is_named, median, quartiles
from .intervals import Spans, covered_ns, joined, shared_ns, union
from .model import Breakdown, Idle, IdleCause, KernelClass, Phase, Steps
from .steps import step_windows

NAN = float("nan")
_COLLECTIVE_OP = re.compile(r"^(gloo|mpi|nccl|ucc|c10d):")


def measure(
    trace: Trace, steps: Steps, phase: Int8Array, kernel_class: Int8Array, idle: Idle, device_paced: bool
) -> Breakdown:
    """All figures over the steady steps, taken together; times are medians.

    Shares are of the steps' windows (`step_windows`), so that a host that runs ahead does not distort them; those of
    the step's host range (`step_idle_pct`, `data_loading_pct`) say so. Time that several kinds of work share counts as
    compute, then as communication, then as copying.
    """
    window_start, window_end = step_windows(trace, steps, device_paced)
    steady = steps.steady
    windows = union(window_start[steady], window_end[steady])
    total_ns = max(windows.total_ns, 1)
    step_ns = (window_end - window_start)[steady]
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    has_device = len(device_rows) > 0
    rows = device_rows if has_device else trace.rows(Category.CPU_OP)
    is_communication = _communication(trace, rows, kernel_class)
    is_copy = (trace.cat[rows] == Category.MEMCPY) | (trace.cat[rows] == Category.MEMSET)

    compute = _spans(trace, rows[~is_communication & ~is_copy])
    communication = _spans(trace, rows[is_communication])
    work = joined(compute, communication)
    busy = joined(work, _spans(trace, rows[is_copy]))
    compute_ns, communication_ns = shared_ns(compute, windows), shared_ns(communication, windows)
    exposed_ns = shared_ns(work, windows) - compute_ns
    idle_ns = total_ns - shared_ns(busy, windows)

    def share(ns: float) -> float:
        return 100.0 * ns / total_ns

    host_steps = union(steps.start_ns[steady], steps.end_ns[steady])
    host_steps_ns = max(host_steps.total_ns, 1)
    forward_ns, backward_ns, optimizer_ns = (
        _phase_ns(trace, phase, wanted, rows, windows, steps, has_device)
        for wanted in (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    )
    data = _spans(trace, np.flatnonzero((phase == Phase.DATA) & _is_host(trace)))
    return Breakdown(
        step_us=_median(step_ns) / 1000,
        step_spread_us=_spread(step_ns) / 1000,
        device_step_us=(_median(_device_spans(trace, steps, device_rows)) if has_device else _median(step_ns)) / 1000,
        gpu_idle_pct=_idle_share(trace, device_rows) if has_device else NAN,
        step_idle_pct=100.0 - _percent(shared_ns(busy, host_steps), host_steps_ns),
        compute_pct=share(compute_ns),
        memcpy_pct=share(total_ns - idle_ns - compute_ns - exposed_ns),
        communication_pct=share(communication_ns),
        communication_exposed_pct=share(exposed_ns),
        communication_overlap_pct=_percent(communication_ns - exposed_ns, communication_ns),
        idle_pct=share(idle_ns),
        data_loading_pct=_percent(shared_ns(data, host_steps), host_steps_ns),
        forward_pct=share(forward_ns),
        backward_pct=share(backward_ns),
        optimizer_pct=share(optimizer_ns),
        idle_by_cause_pct=_idle_by_cause(idle, windows, idle_ns, total_ns),
        kernels_per_step=_kernels_per_step(trace, steps),
        class_pct=_class_shares(trace, steps, kernel_class),
    )


def _spans(trace: Trace, rows: IntArray) -> Spans:
    """The time that any of `rows` covers."""
    return union(trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows])


def _is_host(trace: Trace) -> BoolArray:
    return (trace.cat >= Category.CPU_OP) & (trace.cat <= Category.RUNTIME)


def _communication(trace: Trace, rows: IntArray, kernel_class: Int8Array) -> BoolArray:
    """Which of `rows` communicate: kernels by their class, operators (without a device) by their name."""
    is_of_class = kernel_class[rows] == KernelClass.COMMUNICATION
    return np.where(trace.cat[rows] == Category.CPU_OP, is_named(trace, rows, _COLLECTIVE_OP.search), is_of_class)


def _phase_ns(
    trace: Trace, phase: Int8Array, wanted: Phase, rows: IntArray, windows: Spans, steps: Steps, has_device: bool
) -> int:
    """Device time of a phase's work in steady steps; without a device, host time under the phase."""
    if has_device:
        of = steps.of[rows]
        is_steady = np.append(~steps.is_warmup, False)[of]
        chosen = rows[(phase[rows] == wanted) & is_steady]
        return _spans(trace, chosen).total_ns
    return shared_ns(_spans(trace, np.flatnonzero((phase == wanted) & _is_host(trace))), windows)


def _idle_share(trace: Trace, device_rows: IntArray) -> float:
    """1 - union(device work) / (first to last device event), in per cent."""
    busy = _spans(trace, device_rows).total_ns
    span = int(trace.end_ns[device_rows].max() - trace.ts_ns[device_rows].min())
    return 100.0 - _percent(busy, span) if span else 0.0


def _idle_by_cause(idle: Idle, windows: Spans, idle_ns: int, total_ns: int) -> tuple[float, ...]:
    """Idle time inside the windows by cause. What lies before the first or after the last device event is host-bound:
    nothing was launched."""
    inside = covered_ns(windows, idle.start_ns, idle.end_ns)
    by_cause = np.bincount(idle.cause, weights=inside, minlength=len(IdleCause))
    by_cause[IdleCause.HOST_BOUND] += idle_ns - by_cause.sum()
    return tuple(float(100.0 * ns / total_ns) for ns in by_cause)


def _device_spans(trace: Trace, steps: Steps, device_rows: IntArray) -> IntArray:
    """For each steady step that launched device work, the time from its first to its last device event."""
    rows = device_rows[steps.of[device_rows] >= 0]
    step = steps.of[rows]
    first = np.full(len(steps), np.iinfo(np.int64).max)
    last = np.zeros(len(steps), dtype=np.int64)
    np.minimum.at(first, step, trace.ts_ns[rows])
    np.maximum.at(last, step, trace.end_ns[rows])
    used = (np.bincount(step, minlength=len(steps)) > 0) & ~steps.is_warmup
    return (last - first)[used]


def _kernels_per_step(trace: Trace, steps: Steps) -> float:
    kernels = trace.rows(Category.KERNEL)
    of = steps.of[kernels]
    return _median(np.bincount(of[of >= 0], minlength=len(steps))[steps.steady])


def _class_shares(trace: Trace, steps: Steps, kernel_class: Int8Array) -> tuple[float, ...]:
    """Share of kernel time per class, over the kernels of the steady steps."""
    kernels = trace.rows(Category.KERNEL)
    kernels = kernels[np.append(~steps.is_warmup, False)[steps.of[kernels]]]
    time = np.bincount(kernel_class[kernels], weights=trace.dur_ns[kernels], minlength=len(KernelClass))
    return tuple((100.0 * time / max(time.sum(), 1.0)).tolist())


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0


def _median(values: IntArray | FloatArray) -> float:
    return median(values) if len(values) else 0.0


def _spread(values: IntArray) -> float:
    """Half the range between the quartiles."""
    if not len(values):
        return 0.0
    low, high = quartiles(values)
    return (high - low) / 2
