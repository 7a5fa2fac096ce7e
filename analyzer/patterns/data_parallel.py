"""data-parallel: one process drives several devices through `nn.DataParallel`.

Why it is slow: in every step the model is copied to all devices, the batch is scattered and the outputs are gathered on
the first one, and afterwards the gradients are summed there. One Python process launches all devices' kernels in turn.
Trace: `Broadcast`, `Scatter` and `Gather` around the forward passes, their backward, and device work on several devices
of one process.
Edit: none of that runs: with one process for each device the gradients' all-reduce runs beside the backward pass. That
each process then launches only its own kernels is not counted.
Gate: one device, on which `nn.DataParallel` does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, is_named
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.roots import model_calls
from ..timeline.select import count_per_step, device_rows, events_of, in_typical_step, launched_by, outermost, steady
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_FORWARD = ("Broadcast", "Scatter", "Gather")
_BACKWARD = tuple(f"autograd::engine::evaluate_function: {name}Backward" for name in _FORWARD)


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each place that calls a model on several devices."""
    trace = timeline.trace
    copies = trace.rows_named(_FORWARD[:1])
    if not len(copies):
        return
    devices = _devices(timeline)
    if len(devices) < 2:
        return
    rows = trace.rows_named((*_FORWARD, *_BACKWARD))
    rows = outermost(timeline, steady(timeline, rows[trace.cat[rows] == Category.CPU_OP]))
    occurrences = [
        Occurrence(anchor, Edit(removed_ops=here), _cost_rows(timeline, here))
        for anchor, here in _by_call(timeline, rows, steady(timeline, copies))
    ]
    events = events_of(timeline, in_typical_step(timeline, rows))
    busy_ms = [_busy_ms(timeline, device) for device in devices.tolist()]
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="the model is copied to all devices in each step, and outputs and gradients back",
            remedy="a process for each device (DistributedDataParallel)",
            occurrences=group,
            evidence=(
                Evidence("devices", "devices of this process", len(devices), "", events),
                Evidence(
                    "copies", "copies of the model per step", count_per_step(timeline, steady(timeline, copies)), ""
                ),
                Evidence("busiest", "device work per step on the busiest device", max(busy_ms), "ms"),
                Evidence("idlest", "on the least busy one", min(busy_ms), "ms"),
            ),
            probability=0.9,
        )


def _devices(timeline: Timeline) -> IntArray:
    device = timeline.trace.device[device_rows(timeline)].astype(np.int64)
    return distinct(device[device != NONE])


def _by_call(timeline: Timeline, rows: IntArray, copies: IntArray) -> list[tuple[int, IntArray]]:
    """`rows` by the call of the model that they belong to: the last one that began before each.

    A call is the outermost module's, or, without Python stacks, the first copy of the model in a step.
    """
    trace = timeline.trace
    calls = model_calls(timeline)
    calls = calls[is_named(trace, calls, lambda name: name.startswith("nn.Module: DataParallel"))]
    if not len(calls):
        steps = timeline.steps.of[copies]
        calls = copies[np.append(True, np.diff(steps) != 0)[: len(copies)]]
    owner = np.searchsorted(trace.ts_ns[calls], trace.ts_ns[rows], side="right") - 1
    return [(int(calls[i]), rows[owner == i]) for i in distinct(owner[owner >= 0]).tolist()]


def _cost_rows(timeline: Timeline, rows: IntArray) -> IntArray:
    """The operators on the host or their device work, whichever takes longer."""
    launched = np.sort(np.concatenate(launched_by(timeline, rows)))
    dur_ns = timeline.trace.dur_ns
    return launched if dur_ns[launched].sum() > dur_ns[rows].sum() else rows


def _busy_ms(timeline: Timeline, device: int) -> float:
    rows = device_rows(timeline)
    rows = rows[is_among(timeline.trace.device[rows], (device,))]
    return round(float(timeline.trace.dur_ns[rows].sum()) / max(len(timeline.steps.steady), 1) / 1e6, 3)


PATTERN = Pattern(
    code="TAP901",
    slug="data-parallel",
    title="One process drives several devices",
    fix=FixKind.ADVICE,
    find=find,
    needs=("device",),
    group="distributed",
    stage=Stage.ARCHITECTURE,
)
