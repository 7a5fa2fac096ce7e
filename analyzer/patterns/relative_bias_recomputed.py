"""relative-bias-recomputed: the relative position bias is gathered from its table in every forward pass of inference.

Why it is slow: the bias is the same for every input; gathering heads x tokens x tokens numbers by index, permuting and
copying them takes launches and memory traffic in each layer, next to an attention that is small itself.
Trace: between the projections of an attention, an index (or an embedding) into a table of as many columns as there are
heads, that gives one number for each head, query and key.
Edit: the index goes, and what works on its result alone (views, the permuted copy, a sigmoid), up to where it is added
to the scores or passed as a mask.
Gate: recordings with a backward pass through the bias: training needs it anew in each step.
Families: windowed transformers have it in every layer; others that do are found the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.attention_calls import AttentionCall, attention_calls
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.op_inputs import tensors
from ..timeline.select import backward_of, backward_ops, count_per_step, events_of, in_typical_step, launched_by
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_GATHERS = ("aten::index", "aten::index_select", "aten::embedding")
_NOTICEABLE_SHARE = 0.002


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that gathers the bias."""
    if not len(timeline.trace.rows_named(_GATHERS)):
        return
    gathered = [rows for call in attention_calls(timeline) if len(rows := _bias(timeline, call))]
    if not gathered or _is_trained(timeline, gathered):
        return
    of_anchor = {int(rows[0]): rows for rows in gathered}
    for occurrences in by_site(timeline, (_occurrence(timeline, rows) for rows in gathered)):
        rows = np.sort(np.concatenate([of_anchor[one.anchor] for one in occurrences]))
        first = np.array([one.anchor for one in occurrences])
        if timeline.trace.dur_ns[rows].sum() / 1000.0 < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        table = timeline.trace.inputs_of(int(first[0])).shape(0)
        yield Candidate(
            what="the relative position bias is gathered in every forward pass",
            remedy="keeping it",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "gathered",
                    "biases gathered per step",
                    count_per_step(timeline, first),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("table", "table", "x".join(map(str, table)), "elements"),
            ),
            probability=0.85,
        )


def _is_trained(timeline: Timeline, gathered: list[IntArray]) -> bool:
    backward = backward_ops(timeline)
    first = np.array([int(rows[0]) for rows in gathered])
    return bool(len(backward)) and any(len(rows) for rows in backward_of(timeline, first, backward))


def _bias(timeline: Timeline, call: AttentionCall) -> IntArray:
    """The operators of a call that make its bias, the gathering one first; empty if there are none."""
    trace = timeline.trace
    ops = call.ops.tolist()
    numbers = _numbers(call)
    start = next(
        (
            k
            for k, row in enumerate(ops[:-1])
            if trace.name_of(row) in _GATHERS and numbers and _gathers(timeline, row, ops[k + 1], call, numbers)
        ),
        None,
    )
    if start is None:
        return call.ops[:0]
    end = start + 1
    while end < len(ops) and ops[end] not in (call.core[0], call.core[-1]) and _is_of_bias(timeline, ops[end], numbers):
        end += 1
    return call.ops[start:end]


def _numbers(call: AttentionCall) -> int:
    """How many numbers a bias of the call has: heads x queries x keys; 0 if unknown."""
    if len(call.query) < 4 or len(call.key) < 4:
        return 0
    return call.query[-3] * call.query[-2] * call.key[-2]


def _gathers(timeline: Timeline, row: int, following: int, call: AttentionCall, numbers: int) -> bool:
    """Whether a gather makes the bias: one row of a table of heads for each pair of a query and a key.

    Profilers leave out the sizes of an index that comes in a list: then what the next operator takes tells.
    """
    held = [dims for _, dims in tensors(timeline.trace.inputs_of(row)) if dims]
    heads = call.query[-3]
    if not held or len(held[0]) != 2 or heads not in held[0]:
        return False
    made = any(prod(index) * heads == numbers for index in held[1:])
    return made or (len(held) == 1 and _is_of_bias(timeline, following, numbers))


def _is_of_bias(timeline: Timeline, row: int, numbers: int) -> bool:
    """Whether an operator works on the bias alone: a view, a copy, a sigmoid, a factor."""
    sizes = [prod(dims) for _, dims in tensors(timeline.trace.inputs_of(row)) if dims]
    return bool(sizes) and max(sizes) == numbers


def _occurrence(timeline: Timeline, rows: IntArray) -> Occurrence:
    cost = rows if timeline.is_cpu_only else np.concatenate(launched_by(timeline, rows))
    return Occurrence(int(rows[0]), Edit(removed_ops=rows), cost)


PATTERN = Pattern(
    code="TAP607",
    slug="relative-bias-recomputed",
    title="Relative position bias gathered anew",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("shapes",),
    group="attention_bottleneck",
)
