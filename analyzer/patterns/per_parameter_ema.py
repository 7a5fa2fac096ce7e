"""per-parameter-ema: the averaged copy of the model is updated one tensor at a time.

Why it is slow: each tensor costs Python's loop and two to four small operators, which on a device are as many launches
of a few µs each, while the device waits for the host; one multi-tensor call does all of them.
Trace: an unbroken run of `mul_` and `add_` (or `lerp_`, or `mul`, `add`, `copy_`) that Python asked for, outside the
optimizer, over tensors of the gradients' shapes, at least half as many as the step accumulates gradients.
Edit: one `torch._foreach_lerp_` over lists made in the loop. On a device a few launches and the memory traffic of one
pass stay. On the CPU the last pass over each tensor stays and 4 µs a tensor to gather it: measured with torch 2.13 on
one thread, 77-252 tensors of 8-256 channels, 0.3-0.65 of `mul_`, `add_`, 0.2-0.45 of `mul`, `mul`, `add`, 0.5-0.9 of
`lerp_`.
Gate: few tensors; runs that only scale or only add (clipping, weight decay); other shapes than the gradients'; traces
without a backward; foreach calls.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, launched_by, us_per_step
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .runs import gradients, runs_of, spanned

_DECAYS = ("aten::mul_", "aten::mul", "aten::lerp_", "aten::lerp")
_UPDATES = ("aten::add_", "aten::add", "aten::lerp_", "aten::lerp", "aten::sub_")
_BETWEEN = (
    *("aten::copy_", "aten::sub", "aten::rsub", "aten::clone", "aten::detach", "aten::to", "aten::is_floating_point"),
    *("aten::_has_compatible_shallow_copy_type", "aten::set_", "aten::item", "aten::_local_scalar_dense"),
)

_LEAST_TENSORS = 30
_LEAST_SHARE_OF_GRADIENTS = 0.5

_US_PER_TENSOR = 4.0
"""What one tensor costs on the CPU to be gathered from `parameters()` or a `state_dict()`."""
_DEVICE_HOST_FACTOR = 0.15
_DEVICE_FACTORS = ((1.5, 0.9), (2.5, 0.6), (np.inf, 0.35))
"""What is left of the kernels' time, by the most kernels a tensor costs now: a `lerp` reads two and writes one."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place that updates an average tensor by tensor."""
    trace = timeline.trace
    found = gradients(timeline)
    if found is None:
        return
    least = max(_LEAST_TENSORS, _LEAST_SHARE_OF_GRADIENTS * found.per_step)
    updates: dict[int, IntArray] = {}
    occurrences: list[Occurrence] = []
    for run in runs_of(timeline, {*_DECAYS, *_UPDATES, *_BETWEEN}, per_run=_UPDATES, least=least):
        own = run[is_among(run, trace.rows_named(_UPDATES))]
        decays = run[is_among(run, trace.rows_named(_DECAYS))]
        if len(decays) >= least and found.are_like(timeline, own):
            blend = run[run >= min(decays[0], own[0])]
            occurrences.append(_occurrence(timeline, blend, own))
            updates[occurrences[-1].anchor] = own
    for group in by_site(timeline, occurrences):
        yield _candidate(timeline, group, np.concatenate([updates[one.anchor] for one in group]))


def _candidate(timeline: Timeline, group: tuple[Occurrence, ...], updates: IntArray) -> Candidate:
    rows = np.sort(np.concatenate([one.cost_rows for one in group]))
    events = events_of(timeline, in_typical_step(timeline, updates))
    return Candidate(
        what="the averaged model is updated tensor by tensor",
        remedy="one multi-tensor update",
        occurrences=group,
        evidence=(
            Evidence("tensors", "tensors updated per step", count_per_step(timeline, updates), "", events),
            Evidence("update", "time of the update per step", round(us_per_step(timeline, rows) / 1000, 3), "ms"),
        ),
        probability=0.9,
    )


def _occurrence(timeline: Timeline, run: IntArray, updates: IntArray) -> Occurrence:
    trace, rows = timeline.trace, spanned(timeline, run)
    total_ns = int(trace.dur_ns[rows].sum())
    if timeline.is_cpu_only:
        kept_ns = int(trace.dur_ns[updates].sum()) + len(updates) * _US_PER_TENSOR * 1000
        edit = Edit(scales=(Scale(rows, min(1.0, kept_ns / max(total_ns, 1))),))
        return Occurrence(anchor=int(run[0]), edit=edit, cost_rows=rows)
    kernels = np.concatenate(launched_by(timeline, rows))
    per_tensor = len(kernels) / len(updates)
    factor = next(factor for most, factor in _DEVICE_FACTORS if per_tensor <= most)
    edit = Edit(scales=(Scale(rows, _DEVICE_HOST_FACTOR), Scale(kernels, factor)))
    return Occurrence(int(run[0]), edit, kernels if trace.dur_ns[kernels].sum() > total_ns else rows)


PATTERN = Pattern(
    code="TAP804",
    slug="per-parameter-ema",
    title="Averaged weights are updated one by one",
    fix=FixKind.SAFE,
    find=find,
    group="training loop and memory",
)
