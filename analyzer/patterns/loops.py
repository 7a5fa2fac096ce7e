"""What rules about Python loops have in common: rounds of small work that one batched pass would do at once.

The edit: all rounds but the first go, with their launches and their backward; the first takes over the arithmetic of
the others, which is their time less the fixed cost of each call, and the Python time between the calls shrinks to one
round's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_named
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.memo import once
from ..timeline.model import Timeline
from ..timeline.repeats import Repeat, find_repeats
from ..timeline.select import (
    NOTICEABLE_SHARE,
    backward_of,
    backward_ops,
    events_of,
    in_typical_step,
    inside,
    launched_by,
    outermost,
    steady,
)
from ..timeline.sites import group_by_site
from ..timeline.transfers import sync_calls
from ..trace.model import NONE, BoolArray, Category, IntArray
from .base import Candidate, Occurrence

_CPU_CALL_NS = 5_000.0
"""Fixed cost of an operator on the CPU while it is profiled: dispatch, allocation, the Python call around it."""
_KERNEL_NS = 2_000.0
"""Time that a kernel with next to nothing to do shows."""
_READ = re.compile(
    r"^aten::(item|_local_scalar_dense|is_nonzero|nonzero|masked_select|equal|unique\w*|_unique2?)$"
    r"|^<built-in method (item|tolist|numpy|cpu|nonzero) of Tensor"
)
_SCALAR = re.compile(r"^aten::(item|_local_scalar_dense)$")
_CUT = re.compile(r"(Select|Slice|Narrow)Backward\d*$")
"""Backward of what cuts a round's part out: fills a gradient of the whole tensor's size, which is added to the others'.
The batched pass cuts nothing."""
_WRITE = re.compile(r"aten::(copy_|fill_|index_put_|masked_fill_|scatter_|index_copy_)$")
"""What `x[i] = value` runs."""
_OWN = re.compile(r"\bnms\b|linear_sum_assignment|^Optimizer\.step|autograd::engine|\): backward$|DataLoaderIter")


@dataclass(frozen=True, slots=True)
class Loop:
    """A repeat with the operators of its rounds."""

    repeat: Repeat
    ops: IntArray
    """Operators called in the rounds, outermost only, in time order."""
    round_of: IntArray
    """For each of `ops`, its round."""

    def rows(self, timeline: Timeline) -> IntArray:
        """All events that begin during the loop, those of other threads too."""
        trace, units = timeline.trace, self.repeat.units
        return np.arange(int(units[0]), int(np.searchsorted(trace.ts_ns, trace.end_ns[units[-1]])))

    def rounds_with(self, timeline: Timeline, rows: IntArray) -> int:
        """In how many rounds one of `rows` (host events) stands."""
        owner = inside(timeline, rows, self.repeat.units)
        return len(distinct(np.searchsorted(self.repeat.starts, owner[owner != NONE], side="right")))


def reading_rows(timeline: Timeline, loop: Loop) -> IntArray:
    """Host events during a loop that read values of tensors: operators, methods, waits for the device."""
    rows = loop.rows(timeline)
    reads = rows[is_named(timeline.trace, rows, _READ.search)]
    reads = reads[~_is_operand(timeline, reads)]
    if timeline.is_cpu_only:
        return reads
    waits = sync_calls(timeline)
    return np.sort(np.concatenate([reads, waits[(waits >= rows[0]) & (waits <= rows[-1])]]))


def _is_operand(timeline: Timeline, reads: IntArray) -> BoolArray:
    """Which of `reads` an operator does for itself on the CPU: a tensor of no dimensions that it takes for a number
    (`x.std()` in the backward, `linspace`). Python gets nothing of it."""
    trace = timeline.trace
    above = timeline.tree.parent[reads]
    return is_named(trace, reads, _SCALAR.match) & (above != NONE) & (trace.cat[above] == Category.CPU_OP)


def takes_apart(timeline: Timeline, loop: Loop) -> bool:
    """Whether most rounds read values of tensors and few write any: results on their way to Python."""
    trace = timeline.trace
    reads, rounds = reading_rows(timeline, loop), loop.repeat.rounds
    writes = loop.ops[is_named(trace, loop.ops, _WRITE.match)]
    return 2 * loop.rounds_with(timeline, reads) >= rounds and 2 * loop.rounds_with(timeline, writes) < rounds


def has_own_pattern(timeline: Timeline, loop: Loop) -> bool:
    """Whether a loop's rounds are what another rule speaks of (non-maximum suppression, assignments) or steps."""
    return bool(is_named(timeline.trace, loop.rows(timeline), _OWN.search).any())


@once
def loops(timeline: Timeline) -> tuple[Loop, ...]:
    """The loops in user code whose rounds run operators."""
    trace = timeline.trace
    repeats = find_repeats(timeline)
    if not repeats:
        return ()
    found: list[Loop] = []
    rows = outermost(timeline, steady(timeline, trace.rows(Category.CPU_OP)))
    for repeat in repeats:
        lowest, highest = np.searchsorted(rows, (repeat.units[0], repeat.units[-1] + 1))
        last = int(trace.end_ns[repeat.units[-1]])
        highest = int(np.searchsorted(trace.ts_ns[rows], last)) if highest < len(rows) else highest
        near = rows[lowest:highest]
        owner = inside(timeline, near, repeat.units)
        ops, owner = near[owner != NONE], owner[owner != NONE]
        round_of = np.searchsorted(repeat.starts, owner, side="right") - 1
        if 2 * len(distinct(round_of)) >= repeat.rounds:
            found.append(Loop(repeat, ops, round_of))
    return tuple(found)


def loop_candidates(
    timeline: Timeline, wanted: Callable[[Loop], bool], *, what: str, remedy: str, probability: float
) -> Iterator[Candidate]:
    """One candidate per site whose loops are wanted and take a noticeable share of the step."""
    found = {anchor_of(timeline, loop): loop for loop in loops(timeline) if wanted(loop)}
    if not found:
        return
    backward = backward_ops(timeline)
    for anchors in group_by_site(timeline, np.array(sorted(found))):
        group = [found[row] for row in anchors.tolist()]
        spans = np.array([loop.repeat.span_ns(timeline) for loop in group]) / 1000.0
        cost_us = float(spans.sum()) / max(len(timeline.steps.steady), 1)
        if cost_us < NOTICEABLE_SHARE * timeline.step_us:
            continue
        rounds = int(np.median([loop.repeat.rounds for loop in group]))
        ops = np.sort(np.concatenate([loop.ops for loop in group]))
        yield Candidate(
            what=what,
            remedy=remedy,
            occurrences=tuple(
                Occurrence(anchor, batched(timeline, loop, backward), loop.repeat.units)
                for anchor, loop in zip(anchors.tolist(), group, strict=True)
            ),
            evidence=(
                Evidence("rounds", "rounds of one loop", rounds, ""),
                Evidence(
                    "calls",
                    "operators called in its rounds, per step",
                    len(ops) / max(len(timeline.steps.steady), 1),
                    "",
                    events_of(timeline, in_typical_step(timeline, ops)),
                ),
                Evidence("alike", "rounds that do the same", round(100 * group[0].repeat.regularity), "%"),
            ),
            cost_us_per_step=cost_us,
            probability=probability,
        )


def anchor_of(timeline: Timeline, loop: Loop) -> int:
    """The costliest unit of the second round: its line lies in the loop's body."""
    repeat = loop.repeat
    end = repeat.starts[2] if repeat.rounds > 2 else len(repeat.units)
    units = repeat.units[repeat.starts[1] : end]
    return int(units[np.argmax(timeline.trace.dur_ns[units])])


def batched(timeline: Timeline, loop: Loop, backward: IntArray) -> Edit:
    """The edit of a loop that becomes one pass over everything that its rounds work on."""
    repeat = loop.repeat
    floor_ns = _CPU_CALL_NS if timeline.is_cpu_only else _KERNEL_NS
    is_first = loop.round_of == 0
    first, others = loop.ops[is_first], loop.ops[~is_first]
    back_first, back_others = (_joined(backward_of(timeline, rows, backward)) for rows in (first, others))
    computing = back_others[~is_named(timeline.trace, back_others, _CUT.search)]
    if timeline.is_cpu_only:
        work_ns = _work_ns(timeline, others, floor_ns)
        grown = (_grown(timeline, back_first, computing, floor_ns),)
    else:
        work_ns = 0.0
        grown = tuple(
            _grown(timeline, _launched(timeline, kept), _launched(timeline, gone), floor_ns)
            for kept, gone in ((first, others), (back_first, computing))
        )
    return Edit(
        scales=(*_host_scales(timeline, repeat, work_ns), *(scale for scale in grown if len(scale.rows))),
        removed_ops=np.concatenate([repeat.others, back_others]),
    )


def _host_scales(timeline: Timeline, repeat: Repeat, work_ns: float) -> tuple[Scale, ...]:
    """What the host still does: one round and the arithmetic of all.

    Where the function runs within the step, all that it does is scaled, so that the Python time between the calls is
    counted too; else only the first round's calls are.
    """
    trace, step = timeline.trace, int(timeline.steps.of[repeat.frame])
    frame, span_ns = repeat.frame, repeat.span_ns(timeline)
    kept_ns = span_ns / repeat.rounds + work_ns
    first_ns = float(trace.dur_ns[repeat.first].sum())
    is_within = (
        step != NONE
        and trace.ts_ns[frame] >= timeline.steps.start_ns[step]
        and trace.end_ns[frame] <= timeline.steps.end_ns[step]
    )
    if not is_within:
        return (Scale(repeat.first, (first_ns + work_ns) / first_ns),) if first_ns else ()
    whole_ns = float(trace.dur_ns[frame])
    left_ns = whole_ns - float(trace.dur_ns[repeat.others].sum())
    wanted_ns = min(whole_ns - span_ns + kept_ns, whole_ns)
    return (Scale(np.array([frame]), round(wanted_ns / left_ns, 4)),) if left_ns > 0 else ()


def _grown(timeline: Timeline, first: IntArray, others: IntArray, floor_ns: float) -> Scale:
    """The first round's rows with the arithmetic of the others added."""
    first_ns = float(timeline.trace.dur_ns[first].sum())
    if not first_ns:
        return Scale(no_rows(), 1.0)
    return Scale(first, round((first_ns + _work_ns(timeline, others, floor_ns)) / first_ns, 3))


def _work_ns(timeline: Timeline, rows: IntArray, floor_ns: float) -> float:
    return float(np.maximum(timeline.trace.dur_ns[rows] - floor_ns, 0.0).sum())


def _launched(timeline: Timeline, hosts: IntArray) -> IntArray:
    return _joined(launched_by(timeline, hosts))


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate(parts) if parts else no_rows()
