"""Copies between host and device, and the waits of the host for the device, as rules look at them."""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import NONE, BoolArray, Category, IntArray
from .columns import distinct, is_among, is_named, median
from .model import IdleCause, KernelClass, Timeline
from .select import device_rows, inside, outermost, steady

_SYNC_CALL = re.compile(r"(Stream|Device|Event|Ctx)Synchronize|hipMemcpyWithStream|^(cuda|hip)Memcpy$")


def sync_calls(timeline: Timeline) -> IntArray:
    """Runtime calls of the steady steps that hold the host until device work is done."""
    trace = timeline.trace
    calls = steady(timeline, trace.rows(Category.RUNTIME))
    return calls[is_named(trace, calls, _SYNC_CALL.search)]


def host_to_device(timeline: Timeline) -> IntArray:
    """Copies to the device in the steady steps."""
    device = device_rows(timeline)
    return device[timeline.kernel_class[device] == KernelClass.MEMCPY_HTOD]


def name_contains(timeline: Timeline, rows: IntArray, part: str) -> BoolArray:
    """For each row, whether its name contains `part`."""
    return is_named(timeline.trace, rows, lambda name: part in name)


def waits_in(timeline: Timeline, hosts: IntArray) -> list[IntArray]:
    """For each host event (not overlapping), the calls inside it that make the host wait for the device.

    These are synchronisations, and calls that copy and return only after their copy is done, as those to or from
    pageable memory do.
    """
    trace = timeline.trace
    copies = device_rows(timeline)
    copies = copies[(trace.cat[copies] == Category.MEMCPY) & (timeline.launches.runtime[copies] != NONE)]
    calls = timeline.launches.runtime[copies].astype(np.int64)
    blocking = calls[(trace.end_ns[calls] >= trace.end_ns[copies]) | name_contains(timeline, copies, "Pageable")]
    rows = distinct(np.concatenate([sync_calls(timeline), blocking]))
    owner = inside(timeline, rows, hosts)
    return [rows[owner == i] for i in range(len(hosts))]


def idle_us_per_step(timeline: Timeline, waits: IntArray) -> float:
    """Device idle time per steady step, in µs, that these waits of the host caused: the median over the steps."""
    idle = timeline.idle
    caused = (idle.cause == IdleCause.SYNC) & is_among(idle.host, waits) & (idle.step != NONE)
    length_ns = (idle.end_ns - idle.start_ns)[caused]
    steps = timeline.steps.steady
    if not len(steps):
        return 0.0
    sums = np.bincount(idle.step[caused], weights=length_ns, minlength=len(timeline.steps))
    return median(sums[steps]) / 1000.0


def outermost_named(timeline: Timeline, names: tuple[str, ...]) -> IntArray:
    """Operators of these names in the steady steps that stand in no other operator at all."""
    trace, tree = timeline.trace, timeline.tree
    rows = trace.rows_named(names)
    rows = steady(timeline, rows[trace.cat[rows] == Category.CPU_OP])
    parent = tree.parent[rows]
    top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    return outermost(timeline, rows[top])
