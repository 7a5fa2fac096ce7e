"""matcher-full-cost-matrix: a matcher costs every prediction of the batch against every target of the batch.

Why it is slow: only predictions and targets of the same image can match, so with n images all but one n-th of the
matrix is computed, copied to the host and thrown away; the host waits for the copy, once for each decoder layer.
Trace: in one execution of a function at least two `linear_sum_assignment`, and before them cost operators
(`aten::cdist`, gathers, ...) that run once for all images, with the copy to the host.
Edit: the copy shrinks to one n-th of its bytes, n being the assignments; on the CPU, where nothing is copied, the cost
operators do. The fixed cost of each call stays, and so do the assignments.
Gate: costs computed image by image already; matrices of less than 64 KB: with few objects an image the matrix is small
and nothing is saved (reported: 1.43 times faster on dense scenes, 1.00 on COCO).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_named
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import KernelClass, Timeline
from ..timeline.op_inputs import tensor_bytes
from ..timeline.python_work import frames_named
from ..timeline.select import events_of, in_typical_step, inside, launched_by, outermost, steady
from ..timeline.sites import SiteFinder, group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_ASSIGNS = re.compile(r"\blinear_sum_assignment\b|\blapjv\b|\blap\.py\(\d+\)")
_COSTS = re.compile(
    r"aten::(cdist|index|gather|index_select|take_along_dim|matmul|bmm|einsum|max|min|maximum|minimum)$"
)
_ELEMENTWISE = re.compile(
    r"aten::(add|sub|mul|div|neg|rsub|abs|pow|log|sigmoid|softmax|clamp|nan_to_num|sum|where|to|cpu)_?$"
)
_LEAST_BYTES = 64 << 10
_NOTICEABLE_SHARE = 0.002
_CPU_CALL_NS = 5_000.0
_KERNEL_NS = 2_000.0


@dataclass(frozen=True, slots=True)
class _Match:
    """One execution of a matcher."""

    frame: int
    images: int
    """Assignments solved."""
    costs: IntArray
    """Operators, not overlapping, that the matrix is made and copied with."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per matcher."""
    matches = [match for match in _matches(timeline) if match.images >= 2 and _is_full(timeline, match)]
    by_frame = {match.frame: match for match in matches}
    for group in group_by_site(timeline, np.array(sorted(by_frame), dtype=np.int64)):
        found = [by_frame[row] for row in group.tolist()]
        costs = np.sort(np.concatenate([match.costs for match in found]))
        occurrences = tuple(_occurrence(timeline, match) for match in found)
        spent = np.concatenate([one.cost_rows for one in occurrences])
        cost_us = float(timeline.trace.dur_ns[spent].sum()) / 1000.0 / max(len(timeline.steps.steady), 1)
        if cost_us < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        yield Candidate(
            what="the matcher costs all predictions of the batch against all its targets",
            remedy="costing each image's own targets",
            occurrences=occurrences,
            evidence=(
                Evidence("images", "images matched in one call", int(np.median([one.images for one in found])), ""),
                Evidence(
                    "costs",
                    "operators that make the matrix, per step",
                    len(costs) / max(len(timeline.steps.steady), 1),
                    "",
                    events_of(timeline, in_typical_step(timeline, costs)),
                ),
            ),
            probability=0.8,
        )


def _matches(timeline: Timeline) -> Iterator[_Match]:
    """Executions of functions that solve assignments, each with its cost operators up to the first of them."""
    trace = timeline.trace
    solved = outermost(timeline, frames_named(timeline, _ASSIGNS))
    finder = SiteFinder(timeline)
    by_frame: dict[int, list[int]] = {}
    for row in solved.tolist():
        function = finder.function(int(timeline.tree.parent[row]))
        if isinstance(function, int) and function != NONE:
            # A comprehension is a frame of its own before Python 3.12.
            by_frame.setdefault(_beyond_comprehension(timeline, finder, function), []).append(row)
    if not by_frame:
        return
    frames = np.array(sorted(by_frame), dtype=np.int64)
    ops = outermost(timeline, steady(timeline, trace.rows(Category.CPU_OP)))
    ops = ops[is_named(trace, ops, lambda name: _COSTS.match(name) or _ELEMENTWISE.match(name))]
    owner = inside(timeline, ops, frames)
    for place, frame in enumerate(frames.tolist()):
        first = min(trace.ts_ns[by_frame[frame]])
        mine = ops[owner == place]
        yield _Match(frame, len(by_frame[frame]), mine[trace.ts_ns[mine] < first])


def _beyond_comprehension(timeline: Timeline, finder: SiteFinder, frame: int) -> int:
    if not timeline.trace.name_of(frame).endswith(("<listcomp>", "<genexpr>")):
        return frame
    outer = int(timeline.tree.parent[frame])
    function = finder.function(outer) if outer != NONE else NONE
    return function if isinstance(function, int) and function != NONE else frame


def _is_full(timeline: Timeline, match: _Match) -> bool:
    """Whether the matrix is made once for all images and not small."""
    trace = timeline.trace
    pairwise = match.costs[is_named(trace, match.costs, _COSTS.match)]
    if not len(match.costs) or not len(pairwise):
        return False
    names = trace.name[pairwise]
    if np.bincount(names).max() >= max(match.images, 3):
        return False
    sizes = [tensor_bytes(trace.inputs_of(row)) for row in match.costs.tolist()]
    return not any(sizes) or max(sizes) >= _LEAST_BYTES


def _occurrence(timeline: Timeline, match: _Match) -> Occurrence:
    share = 1.0 / match.images
    if timeline.is_cpu_only:
        return Occurrence(
            int(match.costs[0]), Edit(scales=_shrunk(timeline, match.costs, share, _CPU_CALL_NS)), match.costs
        )
    launched = launched_by(timeline, match.costs)
    copies = np.concatenate(launched) if launched else no_rows()
    copies = copies[timeline.kernel_class[copies] == KernelClass.MEMCPY_DTOH]
    return Occurrence(int(match.costs[-1]), Edit(scales=_shrunk(timeline, copies, share, _KERNEL_NS)), copies)


def _shrunk(timeline: Timeline, rows: IntArray, share: float, floor_ns: float) -> tuple[Scale, ...]:
    """Each row with that share of its work; its fixed cost stays."""
    took = timeline.trace.dur_ns[rows].astype(np.float64)
    floor = np.minimum(took, floor_ns)
    factors = np.round((floor + (took - floor) * share) / np.maximum(took, 1.0), 3)
    return tuple(Scale(np.array([row]), factor) for row, factor in zip(rows.tolist(), factors.tolist(), strict=True))


PATTERN = Pattern(
    code="TAP002",
    slug="matcher-full-cost-matrix",
    title="Matcher costs predictions against other images' targets",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="vision tasks",
)
