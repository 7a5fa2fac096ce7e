"""How the host feeds the device: launches, their cost, how far the host runs ahead, and what one operator costs it."""

from __future__ import annotations

import re

import numpy as np

from ...trace.model import NONE, FloatArray
from ..model import Feature
from .figures import NAN, known, log_ratio, log_us, mean, median_by, pct, table
from .view import View

_LAUNCH = re.compile(r"^(cu|cuda|hip)\w*Launch")
_TINY_NS = 10_000
_SLOW_LAUNCH = 5
"""A launch that takes this many times the trace's median is held up by something."""

FEATURES: tuple[Feature, ...] = (
    Feature("launches.per_ms", "log10 1/ms", "Launches per time of the host: how busy it is with launching."),
    Feature("launches.cost", "log10 us", "Mean time in a launch call: inflated where threads compete for the host."),
    Feature("launches.slow", "% of launch time", "Launches of over 5 times the median: contention, or a full queue."),
    Feature("launches.host_per_launch", "log10 us", "Host time spent for each launch, Python and dispatch included."),
    Feature("launches.tiny", "% of device events", "Device events under 10 us: not worth their launch."),
    Feature("launches.latency", "log10 us", "Median time from a launch's end to its kernel's start: how far ahead."),
    Feature(
        "launches.ops_per_kernel", "log10 1", "Operators dispatched for one device event: nested, or without work."
    ),
    Feature("launches.call_cost", "log10 us", "Host time for each operator that Python called."),
    Feature("launches.slowness", "log10 1", "Host time of operators against the trace's median of the same operator."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    trace, told = view.trace, view.has_launches
    launches = view.runtime[view.named(view.runtime, _LAUNCH)]
    window, took_ns = view.windows.of[launches], trace.dur_ns[launches].astype(np.float64)
    count, total = view.count(window), view.sum(window, took_ns)
    usual = float(np.median(took_ns)) if len(took_ns) else NAN
    device_dur = trace.dur_ns[view.device]
    events = view.count(view.device_window)
    tiny = device_dur < _TINY_NS
    runtime = view.timeline.launches.runtime[view.device]
    linked = runtime != NONE
    ahead_ns = trace.ts_ns[view.device[linked]] - trace.end_ns[runtime[linked]]
    linked_window = view.device_window[linked]
    return table(
        FEATURES,
        per_ms=known(told, log_ratio(count, view.host_ns / 1e6)),
        cost=known(told, log_us(mean(total, count))),
        slow=known(told, pct(view.sum(window, took_ns * (took_ns > _SLOW_LAUNCH * usual)), total)),
        host_per_launch=known(told, log_us(mean(view.host_ns, count))),
        tiny=known(view.has_device, pct(view.sum(view.device_window, tiny), events)),
        latency=known(told, log_us(view.median_ns(linked_window, ahead_ns))),
        ops_per_kernel=known(view.has_device and view.has_ops, log_ratio(view.count(view.op_window), events)),
        call_cost=known(view.has_ops, log_us(mean(view.host_ns, view.call_count))),
        slowness=known(view.has_ops, _slowness(view)),
    )


def _slowness(view: View) -> FloatArray:
    """log10 of the time of a window's calls against what calls of the same names usually take in this trace."""
    names, took_ns = view.trace.name[view.call_rows], view.trace.dur_ns[view.call_rows]
    usual_ns = median_by(names, took_ns, len(view.trace.names))[names]
    return log_ratio(view.sum(view.call_window, took_ns), view.sum(view.call_window, usual_ns))
