"""permute-contiguous-churn: tensors are permuted and copied to another layout, and a moment later back again.

Why it is slow: each `.contiguous()` after a permute reads and writes the whole tensor; the backward pass copies again
where the next operator wants a dense gradient.
Trace: a permute or transpose that moves the channel, then a `contiguous` that really copies, and soon after, in the
same function, the inverse pair.
Edit: both copies go, and with them the dense copies that the backward of the operators in between, and of the
producer just before, make of their gradients. That is what keeping one layout (channels_last) gives. Where the pair
stands among convolutions on the CPU, the net then runs in that layout too, by the factors of `timeline.layout`.
Gate: permutes that only split attention heads; a `contiguous` that copies nothing; a lone permute and copy (the layout
is really needed, or the fix lies elsewhere).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.layout import CONVOLUTIONS, nchw_scales
from ..timeline.model import Timeline
from ..timeline.op_inputs import numbers
from ..timeline.select import (
    backward_of,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    launched_by,
    outermost,
    steady,
)
from ..timeline.sites import SiteFinder, group_by_site
from ..trace.model import NONE, Category, Dims, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_PERMUTES = frozenset({"aten::permute", "aten::transpose", "aten::movedim", "aten::swapaxes"})
_COPIES = frozenset({"aten::contiguous", "aten::clone"})
_MAX_BETWEEN = 12
"""Operators between the two halves of a pair; farther apart they serve different ends."""


@dataclass(frozen=True, slots=True)
class _Half:
    """One permute and the copy after it, as places in the sequence of outermost operators."""

    at: int
    permute: int
    copy: int
    order: Dims
    """The permutation; () where it was not recorded."""
    shape: Dims
    """Sizes before the permute; () where not recorded."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two halves that cancel, with the operators between them and the one before."""

    first: _Half
    second: _Half
    between: IntArray
    producer: int
    """The operator that made the input; NONE if the pair comes first."""
    neighbours: tuple[int, ...]
    """The producer and the next few operators after the pair."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that moves the layout there and back."""
    pairs = list(_pairs(timeline))
    if not pairs:
        return
    layout = nchw_scales(timeline) if timeline.is_cpu_only else ()
    found = {
        pair.first.copy: _occurrence(timeline, pair, gradients, layout)
        for pair, gradients in zip(pairs, _gradient_copies(timeline, pairs), strict=True)
    }
    shapes = {pair.first.copy: pair.first.shape for pair in pairs}
    orders = {pair.first.copy: pair.first.order for pair in pairs}
    for anchors in group_by_site(timeline, np.array(sorted(found))):
        occurrences = tuple(found[row] for row in anchors.tolist())
        copies = np.sort(np.concatenate([occurrence.edit.removed_ops for occurrence in occurrences]))
        largest = max((shapes[row] for row in anchors.tolist()), key=prod)
        also = ", and convolutions run in NCHW" if any(occurrence.edit.scales for occurrence in occurrences) else ""
        yield Candidate(
            what=f"tensors are permuted and copied to another layout and back{also}",
            remedy="keeping one layout",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "copies",
                    "layout copies per step, backward included",
                    count_per_step(timeline, copies),
                    "",
                    events_of(timeline, in_typical_step(timeline, copies)),
                ),
                Evidence("shape", "largest tensor copied", "x".join(map(str, largest)) or "not recorded", "elements"),
            ),
            probability=0.95 if orders[int(anchors[0])] else 0.7,
        )


def _pairs(timeline: Timeline) -> Iterator[_Pair]:
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    top = rows[is_top & (timeline.forward_op[rows] == NONE)]
    top = top[np.lexsort((trace.ts_ns[top], trace.thread[top]))]
    names = [trace.names[i] for i in trace.name[top].tolist()]
    halves = [half for i, name in enumerate(names) if name in _PERMUTES and (half := _half(timeline, top, names, i))]
    sites = SiteFinder(timeline)
    i = 0
    while i + 1 < len(halves):
        first, second = halves[i], halves[i + 1]
        if _cancel(first, second) and sites.function(first.copy) == sites.function(second.copy):
            between = top[first.at + 2 : second.at]
            producer = int(top[first.at - 1]) if first.at else NONE
            yield _Pair(first, second, between, producer, (producer, *top[second.at + 2 : second.at + 5].tolist()))
            i += 2
        else:
            i += 1


def _half(timeline: Timeline, top: IntArray, names: list[str], at: int) -> _Half | None:
    """The permute at `at` with the copy after it; None if nothing is copied or no channel moves."""
    if at + 1 >= len(names) or names[at + 1] not in _COPIES:
        return None
    trace = timeline.trace
    permute, copy = int(top[at]), int(top[at + 1])
    if trace.thread[permute] != trace.thread[copy] or not _really_copies(timeline, copy):
        return None
    inputs = trace.inputs_of(permute)
    order = _order(names[at], inputs.shape(0), inputs.value(1), inputs.value(2), numbers(inputs, 1))
    if order and not _moves_channel(order):
        return None
    return _Half(at, permute, copy, order, inputs.shape(0))


def _really_copies(timeline: Timeline, copy: int) -> bool:
    trace, tree = timeline.trace, timeline.tree
    inner = [trace.name_of(int(child)) for child in tree.children(copy)]
    return any(name in ("aten::clone", "aten::copy_", "aten::contiguous") for name in inner)


def _order(name: str, shape: Dims, first: str, second: str, permutation: Dims) -> Dims:
    """The permutation that the operator's recorded arguments say; () where they say nothing."""
    if name == "aten::permute":
        return tuple(axis % len(permutation) for axis in permutation)
    rank = len(shape)
    try:
        a, b = int(first) % rank, int(second) % rank
    except (ValueError, ZeroDivisionError):
        return ()
    order = list(range(rank))
    if name == "aten::movedim":
        order.insert(b, order.pop(a))
    else:
        order[a], order[b] = order[b], order[a]
    return tuple(order)


def _moves_channel(order: Dims) -> bool:
    """Whether the second axis goes last, or the last one second, and the others keep their order."""
    last = len(order) - 1
    if last < 2:
        return False
    return order in ((0, *range(2, last + 1), 1), (0, last, *range(1, last)))


def _cancel(first: _Half, second: _Half) -> bool:
    if second.at - first.at > _MAX_BETWEEN + 2:
        return False
    if first.order and second.order:
        return len(first.order) == len(second.order) and all(first.order[a] == i for i, a in enumerate(second.order))
    to_last = (*first.shape[:1], *first.shape[2:], *first.shape[1:2])
    to_second = (*first.shape[:1], *first.shape[-1:], *first.shape[1:-1])
    return second.shape in (to_last, to_second)


def _gradient_copies(timeline: Timeline, pairs: list[_Pair]) -> list[IntArray]:
    """For each pair, the copies to a dense layout in the backward of its operators and of its producer."""
    trace = timeline.trace
    owner: dict[int, int] = {}
    for number, pair in enumerate(pairs):
        for row in (pair.producer, *pair.between.tolist()):
            if row != NONE:
                owner.setdefault(row, number)
    hosts = np.array(sorted(owner), dtype=np.int64)
    backward = backward_of(timeline, hosts)
    of_pair = np.repeat([owner[row] for row in hosts.tolist()], [len(rows) for rows in backward])
    rows = np.concatenate([no_rows(), *backward])
    copies = steady(timeline, trace.rows_named(["aten::contiguous"]))
    within = inside(timeline, copies, rows)
    copies, within = copies[within != NONE], within[within != NONE]
    really = np.array([_really_copies(timeline, row) for row in copies.tolist()], dtype=np.bool_)
    copies, number = copies[really], of_pair[within[really]]
    return [copies[number == i] for i in range(len(pairs))]


def _occurrence(timeline: Timeline, pair: _Pair, gradients: IntArray, layout: tuple[Scale, ...]) -> Occurrence:
    removed = np.sort(np.concatenate([[pair.first.copy, pair.second.copy], gradients]))
    scales = layout if _is_near_convolution(timeline, pair) else ()
    edit = Edit(scales=scales, removed_ops=removed)
    if timeline.is_cpu_only:
        # All that the fix touches: a cost below the saving would be no cost. A gradient's copy lies in its operator.
        cost_rows = outermost(timeline, distinct(np.concatenate([removed, *(scale.rows for scale in scales)])))
    else:
        cost_rows = np.concatenate(launched_by(timeline, removed))
    return Occurrence(pair.first.copy, edit, cost_rows)


def _is_near_convolution(timeline: Timeline, pair: _Pair) -> bool:
    return any(row != NONE and timeline.trace.name_of(row) in CONVOLUTIONS for row in pair.neighbours)


PATTERN = Pattern(
    code="TAP503",
    slug="permute-contiguous-churn",
    title="Layout copied there and back",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="inefficient_conv",
)
