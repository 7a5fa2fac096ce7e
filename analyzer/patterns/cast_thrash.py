"""cast-thrash: tensors are cast between float32 and half precision over and over.

Why it is slow: a cast reads and writes the whole tensor. Autocast keeps the cast of a weight that is trained until the
region ends; of a frozen weight, and in inference mode, it makes a new one at every call. In forward code, `.float()`
and `.half()` round one operator cast the activation there and back.
Trace: operators that cast a weight or bias of recorded size before each call, and whose cast has no backward; a
function that casts large tensors both up and down.
Edit: those casts go, with their backward.
Gate: weights that are trained, whose master copy is float32; casts in one direction only; small tensors and shares.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import of_each, taking
from ..timeline.roots import by_model_call
from ..timeline.select import (
    backward_of,
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    launched_by,
    outer_op,
    steady,
    us_per_step,
)
from ..timeline.sites import SiteFinder
from ..trace.model import NONE, Dims, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_HALF = ("c10::Half", "c10::BFloat16")
_FLOAT = "float"
_WITH_WEIGHTS = (
    *("aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d"),
    *("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d"),
)
"""Operators that autocast runs in half precision, with weight and bias as second and third argument."""
_CASTS = ("aten::to", "aten::_to_copy", "aten::type_as")
_FEW_ELEMENTS = 4096
_NOTICEABLE_SHARE = 0.003


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model whose weights are cast, and one per function that casts there and back."""
    copies = _casting_copies(timeline)
    if not len(copies):
        return
    weights = _weight_casts(timeline, copies)
    yield from _of_weights(timeline, weights)
    yield from _there_and_back(timeline, copies)


def _casting_copies(timeline: Timeline) -> IntArray:
    """Copies of the forward pass from float32 to half precision or the other way."""
    trace = timeline.trace
    copies = steady(timeline, trace.rows_named(("aten::copy_",)))
    copies = copies[(timeline.forward_op[copies] == NONE) & (timeline.phase[copies] != Phase.OPTIMIZER)]
    kept = taking(trace, copies, _FLOAT)
    return kept[np.array(of_each(trace, kept, lambda inputs: bool(_direction(inputs))), dtype=np.bool_)]


def _direction(inputs: OpInputs) -> int:
    """1 for a copy from half precision to float32, -1 for the way back, 0 for another."""
    target, source = inputs.dtype(0), inputs.dtype(1)
    return 1 if target == _FLOAT and source in _HALF else -1 if source == _FLOAT and target in _HALF else 0


# Weights


def _weight_casts(timeline: Timeline, copies: IntArray) -> IntArray:
    """Casts (`aten::to`) of weights and biases that autocast makes before a call; no gradient flows through them."""
    trace, parent = timeline.trace, timeline.tree.parent
    calls = taking(trace, steady(timeline, trace.rows_named(_WITH_WEIGHTS)), _FLOAT)
    casts = steady(timeline, trace.rows_named(("aten::to",)))
    casts = casts[is_among(parent[casts], calls)]
    owner = inside(timeline, copies, casts)
    casts = casts[distinct(owner[owner != NONE])]
    if not len(casts):
        return casts
    parameters = dict(zip(calls.tolist(), of_each(trace, calls, _parameter_shapes), strict=True))
    shapes = of_each(trace, casts, lambda inputs: inputs.shape(0))
    callers = parent[casts].tolist()
    is_weight = [shape in parameters[call] for shape, call in zip(shapes, callers, strict=True)]
    casts = casts[np.array(is_weight, dtype=np.bool_)]
    return casts[~_has_backward(timeline, casts)]


def _parameter_shapes(inputs: OpInputs) -> tuple[Dims, ...]:
    """Sizes of weight and bias, unless the activation has the same."""
    return tuple(
        shape
        for argument in (1, 2)
        if inputs.dtype(argument) == _FLOAT and (shape := inputs.shape(argument)) != inputs.shape(0)
    )


def _has_backward(timeline: Timeline, casts: IntArray) -> np.ndarray:
    backward = backward_ops(timeline)
    forward = timeline.forward_op[backward]
    owner = inside(timeline, forward[forward != NONE], casts)
    found = np.zeros(len(casts), dtype=np.bool_)
    found[owner[owner != NONE]] = True
    return found


def _of_weights(timeline: Timeline, casts: IntArray) -> Iterator[Candidate]:
    occurrences = [_occurrence(timeline, anchor, rows) for anchor, rows in by_model_call(timeline, casts)]
    for group in by_site(timeline, occurrences) if len(casts) else ():
        rows = np.sort(np.concatenate([occurrence.edit.removed_ops for occurrence in group]))
        yield from _candidate(
            timeline,
            group,
            rows,
            what="autocast casts the same weights again at every call",
            remedy="storing them in half precision",
        )


# Activations


def _there_and_back(timeline: Timeline, copies: IntArray) -> Iterator[Candidate]:
    """One candidate per function that itself casts up and down."""
    trace = timeline.trace
    directions = np.array(of_each(trace, copies, _direction), dtype=np.int64)
    is_large = np.array(of_each(trace, copies, lambda inputs: _elements(inputs) >= _FEW_ELEMENTS), dtype=np.bool_)
    copies, directions = copies[is_large], directions[is_large]
    tops = np.array([outer_op(timeline, row) for row in copies.tolist()], dtype=np.int64)
    asked = is_among(tops, trace.rows_named(_CASTS))
    finder = SiteFinder(timeline)
    casts: dict[object, list[tuple[int, int]]] = {}
    for top, direction in zip(tops[asked].tolist(), directions[asked].tolist(), strict=True):
        key = (int(timeline.steps.of[top]), finder.function(top))
        casts.setdefault(key, []).append((top, direction))
    occurrences = []
    for found in casts.values():
        if {direction for _, direction in found} == {1, -1}:
            rows = np.array(sorted({top for top, _ in found}), dtype=np.int64)
            behind = np.concatenate(backward_of(timeline, rows))
            occurrences.append(_occurrence(timeline, int(rows[0]), np.concatenate([rows, behind])))
    for group in by_site(timeline, occurrences) if occurrences else ():
        rows = np.sort(np.concatenate([occurrence.edit.removed_ops for occurrence in group]))
        yield from _candidate(
            timeline,
            group,
            rows,
            what="a tensor is cast to float32 and back to half precision",
            remedy="keeping one type",
        )


def _elements(inputs: OpInputs) -> int:
    return int(np.prod(inputs.shape(0), dtype=np.int64))


def _occurrence(timeline: Timeline, anchor: int, casts: IntArray) -> Occurrence:
    cost_rows = casts if timeline.is_cpu_only else np.sort(np.concatenate(launched_by(timeline, np.sort(casts))))
    return Occurrence(anchor, Edit(removed_ops=np.sort(casts)), cost_rows)


def _candidate(
    timeline: Timeline, occurrences: tuple[Occurrence, ...], casts: IntArray, *, what: str, remedy: str
) -> Iterator[Candidate]:
    cost_rows = np.sort(np.concatenate([occurrence.cost_rows for occurrence in occurrences]))
    if max(us_per_step(timeline, cost_rows), us_per_step(timeline, casts)) < _NOTICEABLE_SHARE * timeline.step_us:
        return
    yield Candidate(
        what=what,
        remedy=remedy,
        occurrences=occurrences,
        evidence=(
            Evidence(
                "casts",
                "casts per step",
                count_per_step(timeline, casts),
                "",
                events_of(timeline, in_typical_step(timeline, casts)),
            ),
        ),
        probability=0.9,
    )


PATTERN = Pattern(
    code="TAP404",
    slug="cast-thrash",
    title="Casts there and back",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="precision",
)
