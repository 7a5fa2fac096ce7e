"""launch-bound: batches so small that the device waits for the host to launch the next kernel."""

from __future__ import annotations

import random

from torchtraceap.analyzer.timeline.model import IdleCause, Timeline
from torchtraceap.analyzer.trace.model import NONE, BoolArray

from ..fault import Fault
from ..job import Job
from .shared.rows import no_rows, with_operators

SLUG = "launch-bound"
_LEAST_IDLE_PCT = 20.0
"""Of the step, waiting for the host. With less than this the device has enough to do, whatever the batch."""
_SHORT_NS = 15_000
"""Kernels shorter than this are over before the host has launched another."""


def apply(job: Job, rng: random.Random) -> bool:
    """The recorded batch as it is: healthy jobs give a device many times as much."""
    if job.batch_multiplier == 1:
        return False
    job.batch_multiplier = 1
    return True


def spoils(timeline: Timeline) -> BoolArray:
    """Short kernels with their operators, where the device waits for the host a good part of the step."""
    idle_pct = timeline.breakdown.idle_by_cause_pct
    if timeline.is_cpu_only or idle_pct[IdleCause.HOST_BOUND] < _LEAST_IDLE_PCT:
        return no_rows(timeline)
    rows = timeline.device_rows
    found = with_operators(timeline, rows[timeline.trace.dur_ns[rows] < _SHORT_NS])
    waits = timeline.idle.cause == IdleCause.HOST_BOUND
    for blamed in (timeline.idle.host, timeline.idle.before):
        found[blamed[waits & (blamed != NONE)]] = True
    return found


FAULT = Fault(SLUG, apply, spoils, on=frozenset({"device"}), is_fact=True)
