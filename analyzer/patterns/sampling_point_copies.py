"""sampling-point-copies: deformable attention copies maps or sampling points to another layout for each level.

Why it is slow: `grid_sample` takes any strides, but each `.contiguous()`, or `reshape` of a permuted tensor, in front
of it reads and writes all of a level's values or sampling points; levels and decoder layers multiply it.
Trace: in one execution of a function at least two `aten::grid_sampler`, with `contiguous`, `clone` or copying `reshape`
operators between the first and the last of them or right before, that really copy.
Edit: these copies go with their launches and their backward. `grid_sampler` itself stays as it was.
Gate: copies under 0.3 % of the step; copies outside the function; a single level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct
from ..timeline.edit import Edit
from ..timeline.family import Family
from ..timeline.model import Timeline
from ..timeline.select import (
    backward_of,
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    is_noticeable,
    launched_by,
    ops_named,
    outermost,
    steady,
)
from ..timeline.sites import SiteFinder, group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_SAMPLERS = ("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d")
_COPIERS = ("aten::contiguous", "aten::clone", "aten::reshape", "aten::flatten")
_BEFORE = 8
"""Operators in front of the first sampling that still prepare it."""
_NOTICEABLE_SHARE = 0.003


@dataclass(frozen=True, slots=True)
class _Sampling:
    """One execution of a function that samples several levels."""

    samplers: IntArray
    copies: IntArray


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that samples and copies."""
    found = {int(one.copies[0]): one for one in _samplings(timeline)}
    if not found:
        return
    backward = backward_ops(timeline)
    for group in group_by_site(timeline, np.array(sorted(found))):
        samplings = [found[row] for row in group.tolist()]
        copies = np.sort(np.concatenate([one.copies for one in samplings]))
        occurrences = tuple(_occurrence(timeline, one, backward) for one in samplings)
        spent = distinct(np.concatenate([one.cost_rows for one in occurrences]))
        if not is_noticeable(timeline, spent, _NOTICEABLE_SHARE):
            continue
        yield Candidate(
            what="sampling copies its maps or points to another layout level by level",
            remedy="sampling them as they lie",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "copies",
                    "layout copies between samplings, per step",
                    count_per_step(timeline, copies),
                    "",
                    events_of(timeline, in_typical_step(timeline, copies)),
                ),
                Evidence(
                    "samplings",
                    "samplings per step",
                    count_per_step(timeline, np.sort(np.concatenate([one.samplers for one in samplings]))),
                    "",
                ),
            ),
            probability=0.8,
        )


def _samplings(timeline: Timeline) -> Iterator[_Sampling]:
    """The samplings of each execution of a function, with the copies that prepare them."""
    samplers = ops_named(timeline, _SAMPLERS)
    if len(samplers) < 2:
        return
    finder = SiteFinder(timeline)
    by_function: dict[int | str, list[int]] = {}
    for row in samplers.tolist():
        by_function.setdefault(_owner(timeline, finder, row), []).append(row)
    ops = outermost(timeline, steady(timeline, timeline.trace.rows(Category.CPU_OP)))
    copiers = _copying(timeline)
    for function, rows in by_function.items():
        if function == NONE or len(rows) < 2:
            continue
        first, last = np.searchsorted(ops, (rows[0], rows[-1]))
        near = ops[max(first - _BEFORE, 0) : last]
        near = near[timeline.steps.of[near] == timeline.steps.of[rows[0]]]
        copies = np.array(
            [row for row in near[np.isin(near, copiers)].tolist() if _owner(timeline, finder, row) == function],
            dtype=np.int64,
        )
        copies = (
            copies[[_owner(timeline, finder, row) == function for row in copies.tolist()]] if len(copies) else copies
        )
        if len(copies):
            yield _Sampling(np.array(rows), copies)


def _owner(timeline: Timeline, finder: SiteFinder, row: int) -> int | str:
    """The execution of a user's function that called an operator; without frames, its annotation."""
    function = finder.function(row)
    return int(timeline.tree.annotation[row]) if function == NONE else function


def _copying(timeline: Timeline) -> IntArray:
    """Outermost `contiguous`, `clone` and shape operators in which a copy really runs."""
    hosts = ops_named(timeline, _COPIERS)
    inner = steady(timeline, timeline.trace.rows_named(("aten::copy_",)))
    return hosts[distinct(owner[owner != NONE])] if len(owner := inside(timeline, inner, hosts)) else hosts[:0]


def _occurrence(timeline: Timeline, sampling: _Sampling, backward: IntArray) -> Occurrence:
    copies = sampling.copies
    behind = np.concatenate(backward_of(timeline, copies, backward))
    removed = np.concatenate([copies, behind])
    spent = removed if timeline.is_cpu_only else np.concatenate(launched_by(timeline, outermost(timeline, removed)))
    return Occurrence(int(copies[0]), Edit(removed_ops=removed), spent)


PATTERN = Pattern(
    code="TAP005",
    slug="sampling-point-copies",
    title="Layout copies between grid samplings",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="vision tasks",
    families=frozenset({Family.DETECTION}),
)
