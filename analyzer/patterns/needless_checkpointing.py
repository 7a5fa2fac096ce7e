"""needless-checkpointing: the forward pass is computed twice to save memory that there is plenty of.

Why it is slow: checkpointed layers are run again in the backward pass, about a third more work for them.
Trace: forward operators (`conv2d`, `linear`, norms) that take sequence numbers inside autograd nodes: they are run
again; with `profile_memory=True` the peak of the step against the device's memory.
Edit: the operators that are run again go.
Gate: a peak over half of the memory, which may well not fit without; where the trace does not say how full the memory
is, the finding is no more than a hint. Double backward passes run backward operators only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, is_named
from ..timeline.edit import Edit
from ..timeline.memory import device_memory_bytes, memory_uses
from ..timeline.model import Phase, Timeline
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    launched_by,
    outermost,
    steady,
)
from ..trace.model import Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_FORWARD_ONLY = (
    *("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose2d", "aten::linear", "aten::batch_norm"),
    *("aten::layer_norm", "aten::group_norm", "aten::scaled_dot_product_attention"),
)
"""What only a forward pass calls: these call what a backward pass may call as well."""
_NODE = re.compile(r"^autograd::engine::evaluate_function: |Backward\d*$|^CheckpointFunction")
_CALL = re.compile(r"torch/utils/checkpoint\.py\(\d+\): checkpoint$")
_HALF = 0.5
_KNOWN_TO_BE_EMPTY, _UNKNOWN = 0.85, 0.4
"""Probabilities: with a memory that is known to be half empty, and with one that nothing is known of."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for all layers that are run again."""
    again = _run_again(timeline)
    if not is_noticeable(timeline, again):
        return
    share = _share_in_use(timeline)
    if share is not None and share > _HALF:
        return
    for group in by_site(timeline, _occurrences(timeline, again)):
        yield _candidate(timeline, group, again, share)


def _run_again(timeline: Timeline) -> IntArray:
    """Forward operators inside the backward pass, outermost ones."""
    trace = timeline.trace
    sure = steady(timeline, trace.rows_named(_FORWARD_ONLY))
    if not np.any((timeline.phase[sure] == Phase.BACKWARD) & (trace.sequence[sure] >= 0)):
        return sure[:0]
    rows = trace.rows(Category.CPU_OP)
    rows = rows[(timeline.phase[rows] == Phase.BACKWARD) & (trace.sequence[rows] >= 0)]
    return outermost(timeline, steady(timeline, rows[~is_named(trace, rows, _NODE.search)]))


def _share_in_use(timeline: Timeline) -> float | None:
    """The peak of the steady steps against the device's memory; None where the trace does not say."""
    steady_steps = timeline.steps.steady
    start, end = timeline.steps.start_ns[steady_steps[0]], timeline.steps.end_ns[steady_steps[-1]]
    shares = [
        use.peak_bytes(int(start), int(end)) / total
        for use in memory_uses(timeline)
        if use.is_absolute and (total := device_memory_bytes(timeline, use.device))
    ]
    return max(shares, default=None)


def _occurrences(timeline: Timeline, again: IntArray) -> list[Occurrence]:
    """One per step, at its first call of `checkpoint`; without stacks at the first operator that is run again."""
    trace, of = timeline.trace, timeline.steps.of
    frames = trace.rows(Category.PYTHON_FUNCTION)
    calls = frames[is_named(trace, frames, _CALL.search)]
    found: list[Occurrence] = []
    for step in timeline.steps.steady.tolist():
        rows = again[of[again] == step]
        if not len(rows):
            continue
        own = calls[of[calls] == step]
        kernels = np.concatenate(launched_by(timeline, rows))
        dearer = kernels if trace.dur_ns[kernels].sum() > trace.dur_ns[rows].sum() else rows
        found.append(Occurrence(int(own[0] if len(own) else rows[0]), Edit(removed_ops=rows), dearer))
    return found


def _candidate(timeline: Timeline, group: tuple[Occurrence, ...], again: IntArray, share: float | None) -> Candidate:
    heavy = again[is_among(again, timeline.trace.rows_named(_FORWARD_ONLY))]
    events = events_of(timeline, in_typical_step(timeline, again))
    in_use = "not recorded" if share is None else f"{100 * share:.0f} %"
    return Candidate(
        what="layers are computed again in the backward pass"
        + ("" if share is None else ", though the memory is half empty"),
        remedy="keeping their activations",
        occurrences=group,
        evidence=(
            Evidence("again", "operators run again per step", count_per_step(timeline, again), "", events),
            Evidence("layers", "layers among them", count_per_step(timeline, heavy), ""),
            Evidence("memory", "device memory in use at the peak", in_use, ""),
        ),
        probability=_UNKNOWN if share is None else _KNOWN_TO_BE_EMPTY,
    )


PATTERN = Pattern(
    code="TAP808",
    slug="needless-checkpointing",
    title="Layers are computed twice",
    fix=FixKind.ADVICE,
    find=find,
    group="training loop and memory",
    stage=Stage.ARCHITECTURE,
)
