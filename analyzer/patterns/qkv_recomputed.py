"""qkv-recomputed: one projection runs twice or more on one input.

Why it is slow: a layer called once for the queries, once for the keys and once for the values computes the same
thing each time.
Trace: one linear layer (one `nn.Module` event's number) called again on an input of the same shape in one execution of
one function, next to an attention; without module events, a layer that makes queries, keys and values at once (three
times as wide as its input) in a row with itself.
Edit: all calls but the first go, with what they launched and their part of the backward pass.
Gate: calls in different executions of a function (a second pass over a flipped image is meant); that it is one input
only the source can tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.attention_backends import FUSED
from ..timeline.attention_calls import enclosing_module
from ..timeline.edit import Edit, no_rows
from ..timeline.model import Timeline
from ..timeline.select import (
    backward_of,
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
    launched_by,
    outside_backward,
)
from ..timeline.sites import SiteFinder
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_LAYER = "aten::linear"
_ATTENTION = (
    *FUSED,
    "aten::softmax",
    "aten::_softmax",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_native_multi_head_attention",
)


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that repeats a projection."""
    repeats = list(_repeats(timeline))
    if not repeats:
        return
    backward = backward_ops(timeline)
    of_anchor = {int(group[0]): group for group in repeats}
    for occurrences in by_site(timeline, (_occurrence(timeline, group, backward) for group in repeats)):
        again = np.sort(np.concatenate([of_anchor[one.anchor][1:] for one in occurrences]))
        data, weight = (timeline.trace.inputs_of(int(again[0])).shape(k) for k in (0, 1))
        yield Candidate(
            what="one projection runs more than once on one input",
            remedy="keeping its result",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "again",
                    "projections computed again per step",
                    count_per_step(timeline, again),
                    "",
                    events_of(timeline, in_typical_step(timeline, again)),
                ),
                Evidence("input", "input of each", "x".join(map(str, data)), "elements"),
                Evidence("weight", "weight of each", "x".join(map(str, weight)), "elements"),
            ),
            probability=0.8,
        )


def _repeats(timeline: Timeline) -> Iterator[IntArray]:
    """Calls of one layer on inputs of one shape in one execution of a function, two or more, next to an attention."""
    trace = timeline.trace
    rows = outside_backward(timeline, (_LAYER, *_ATTENTION))
    is_layer = np.array([name == _LAYER for name in trace.names], dtype=np.bool_)[trace.name[rows]]
    # Layers of one run between two attentions; a layer that occurs once in its run is passed over without a look.
    run = np.cumsum(~is_layer)
    layers, run = rows[is_layer], run[is_layer]
    if len(layers) < 2:
        return
    key = run * (int(trace.inputs.max()) + 2) + trace.inputs[layers] + 1
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    # Behind the last attention there are only the layers that close the model.
    last_run = int(run.max()) if is_layer[-1] else NONE
    finder = SiteFinder(timeline)
    for members in np.split(order, starts[1:]):
        if len(members) < 2 or int(run[members[0]]) == last_run or trace.inputs[layers[members[0]]] == NONE:
            continue
        yield from _same_layer(timeline, finder, layers[np.sort(members)])


def _same_layer(timeline: Timeline, finder: SiteFinder, rows: IntArray) -> Iterator[IntArray]:
    """Parts calls on inputs of one shape by the layer and by the execution of the function that they belong to."""
    trace = timeline.trace
    groups: dict[tuple[object, str], list[int]] = {}
    for row in rows.tolist():
        module = enclosing_module(timeline, row)
        name = trace.name_of(module) if module != NONE else ""
        if name.startswith("nn.Module: Linear") or "Linear_" in name:
            groups.setdefault((finder.function(row), name), []).append(row)
        elif _makes_all_three(timeline, row):
            groups.setdefault((finder.function(row), ""), []).append(row)
    yield from (np.array(group) for group in groups.values() if len(group) > 1)


def _makes_all_three(timeline: Timeline, row: int) -> bool:
    weight = timeline.trace.inputs_of(row).shape(1)
    return len(weight) == 2 and weight[0] == 3 * weight[1]


def _occurrence(timeline: Timeline, group: IntArray, backward: IntArray) -> Occurrence:
    again = group[1:]
    caused = backward_of(timeline, again, backward)
    rows = np.sort(np.concatenate([again, *caused]))
    cost = rows if timeline.is_cpu_only else np.concatenate([no_rows(), *launched_by(timeline, rows)])
    return Occurrence(int(group[0]), Edit(removed_ops=rows), cost)


PATTERN = Pattern(
    code="TAP608",
    slug="qkv-recomputed",
    title="A projection computed again",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes", "stack"),
    group="attention_bottleneck",
)
