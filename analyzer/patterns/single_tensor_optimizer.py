"""single-tensor-optimizer: the optimizer updates one parameter at a time.

Why it is slow: each parameter costs several operators (and on a device as many kernel launches), so a net of a few
hundred small tensors spends the update on overhead, and big tensors are read and written once per operator.
Trace: operators in proportion to the parameters inside `Optimizer.step#…`, and no `_foreach_` or `_fused_` operator.
Edit: `fused=True` (`foreach=True` where the optimizer has no fused kernel). On a device the host part shrinks to a
handful of launches and the kernels to one pass over the state; factors from the operator count (three to five passes
become one). On the CPU only fused helps: measured with torch 2.13 on one thread, 40-300 tensors, it takes 0.26-0.35 of
Adam's and AdamW's time, 0.3-0.6 of SGD's with momentum, and plain SGD gains nothing; foreach gains nothing there.
Gate: few launches; optimizers without such a kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, median
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import events_of, in_typical_step, inside, launched_by, outermost, steady
from ..timeline.sites import group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_STEP = re.compile(r"Optimizer\.step#(?:.*\.)?(\w+)\.step$")
_BATCHED = re.compile(r"_foreach_|_fused_|multi_tensor")
_MIN_OPERATORS = 50
"""Fewer operators than this are not worth batching."""

_DEVICE_HOST_FACTOR = 0.15
_DEVICE_FUSED_FACTOR = 0.4
_DEVICE_FOREACH_FACTOR = 0.9
_FUSED = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})
_FOREACH = frozenset({"RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD", "Rprop"})
_CPU_FACTOR = {"Adam": 0.3, "AdamW": 0.3, "SGD": 0.45}
_PLAIN_SGD_OPERATORS = 1.5
"""Operators per `add_` below which SGD has no momentum and no decay: one `add_` per parameter, nothing to fuse."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per optimizer that works tensor by tensor."""
    trace = timeline.trace
    kinds = {i: match[1] for i, name in enumerate(trace.names) if (match := _STEP.search(name))}
    if not kinds:
        return
    steps = outermost(
        timeline, steady(timeline, np.flatnonzero(is_among(trace.name, list(kinds)) & (trace.stream < 0)))
    )
    operators = _operators_in(timeline, steps)
    single = [i for i, rows in enumerate(operators) if len(rows) >= _MIN_OPERATORS and not _is_batched(timeline, rows)]
    launched = launched_by(timeline, steps)
    for rows in group_by_site(timeline, steps[single]):
        kind = kinds[int(trace.name[rows[0]])]
        chosen = [int(np.searchsorted(steps, row)) for row in rows]
        edits = [_edit(timeline, kind, steps[i], operators[i], launched[i]) for i in chosen]
        if any(edit is None for edit in edits):
            continue
        inner = np.concatenate([operators[i] for i in chosen])
        yield Candidate(
            what=f"{kind} updates one parameter at a time",
            remedy="the fused optimizer" if kind in _FUSED else "the multi-tensor optimizer",
            occurrences=tuple(
                Occurrence(
                    anchor=int(steps[i]), edit=edit, cost_rows=_cost_rows(timeline, steps[i : i + 1], launched[i])
                )
                for i, edit in zip(chosen, edits, strict=True)
                if edit is not None
            ),
            evidence=(
                Evidence(
                    "operators",
                    f"operators inside {kind}.step",
                    median(np.array([len(operators[i]) for i in chosen])),
                    "",
                    events_of(timeline, in_typical_step(timeline, np.sort(inner))),
                ),
                Evidence("kernels", "kernels it launches", median(np.array([len(launched[i]) for i in chosen])), ""),
            ),
        )


def _cost_rows(timeline: Timeline, step: IntArray, launched: IntArray) -> IntArray:
    """The step on the host or its kernels, whichever takes longer."""
    dur_ns = timeline.trace.dur_ns
    return launched if dur_ns[launched].sum() > dur_ns[step].sum() else step


def _operators_in(timeline: Timeline, steps: IntArray) -> list[IntArray]:
    """The outermost operators inside each optimizer step, its own row left out."""
    trace = timeline.trace
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    rows = rows[~is_among(rows, steps)]
    rows = outermost(timeline, rows[inside(timeline, rows, steps) != NONE])
    owner = inside(timeline, rows, steps)
    return [rows[owner == i] for i in range(len(steps))]


def _is_batched(timeline: Timeline, rows: IntArray) -> bool:
    names = timeline.trace.names
    return any(_BATCHED.search(names[i]) for i in distinct(timeline.trace.name[rows]).tolist())


def _edit(timeline: Timeline, kind: str, step: int, operators: IntArray, launched: IntArray) -> Edit | None:
    """What the batched optimizer would change in one step; None where it would change nothing."""
    row = np.array([step])
    if len(launched):
        if kind not in _FUSED and kind not in _FOREACH:
            return None
        factor = _DEVICE_FUSED_FACTOR if kind in _FUSED else _DEVICE_FOREACH_FACTOR
        return Edit(scales=(Scale(row, _DEVICE_HOST_FACTOR), Scale(launched, factor)))
    if not timeline.is_cpu_only or kind not in _CPU_FACTOR or (kind == "SGD" and _is_plain(timeline, operators)):
        return None
    return Edit(scales=(Scale(row, _CPU_FACTOR[kind]),))


def _is_plain(timeline: Timeline, operators: IntArray) -> bool:
    adds = is_among(operators, timeline.trace.rows_named(["aten::add_"])).sum()
    return len(operators) < _PLAIN_SGD_OPERATORS * max(adds, 1)


PATTERN = Pattern(
    code="TAP801",
    slug="single-tensor-optimizer",
    title="Optimizer updates one tensor at a time",
    fix=FixKind.SAFE,
    find=find,
    group="training loop and memory",
    stage=Stage.HARDWARE,
)
