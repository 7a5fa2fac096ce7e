"""cache-emptied-in-loop: every step gives the allocator's memory back, or runs the garbage collector.

Why it is slow: memory that was returned must be allocated again, and `cudaFree` and `cudaMalloc` wait for the device
where the caching allocator would only hand out a block. `gc.collect()` looks at every object of the program.
Trace: frames of `empty_cache` or of the collector's `collect` in at least half of the steps; without stacks, `cudaFree`
and `cudaMalloc` in each of those steps.
Edit: the calls go, and with them the frees and the allocations of the step.
Gate: calls that come now and then (every hundred steps, once per epoch); allocations without frees, which are a cache
that grows; frees that no source line asks for (an allocator that ran out of memory and tried again) are only a hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, is_named
from ..timeline.edit import Edit, no_rows
from ..timeline.model import Timeline
from ..timeline.python_work import frames_named, is_within_step
from ..timeline.select import (
    are_in_most_steps,
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    outermost,
    runtime_calls,
)
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_CALL = re.compile(
    r"torch/(cuda/memory|hip/memory|accelerator/memory|xpu/memory|mps/__init__)\.py\(\d+\): empty_cache$"
)
_COLLECT = re.compile(r"^<built-in function collect>$")
_FREE = re.compile(r"^(cuda|hip)Free(Async)?$|^cuMem(Free|Unmap|Release)")
_ALLOCATE = re.compile(r"^(cuda|hip)Malloc(Async)?$|^cuMem(Alloc|Map|Create)")
_NOTICEABLE_SHARE = 0.001
_LEAST_STEPS = 2


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per line that empties the cache or collects in most steps."""
    if len(timeline.steps.steady) < _LEAST_STEPS:
        return
    frames = np.sort(np.concatenate([frames_named(timeline, _CALL), frames_named(timeline, _COLLECT)]))
    frames = outermost(timeline, frames[is_within_step(timeline, frames)])
    freed, allocated = runtime_calls(timeline, _FREE), runtime_calls(timeline, _ALLOCATE)
    memory = np.sort(np.concatenate([freed, allocated]))
    if len(frames):
        for group in by_site(timeline, _by_frame(timeline, frames, memory)):
            rows = np.array([one.anchor for one in group])
            if are_in_most_steps(timeline, rows) and _is_noticeable(timeline, group):
                yield _candidate(timeline, group, freed, allocated, certain=True)
        return
    of = timeline.steps.of
    both = distinct(of[freed][is_among(of[freed], of[allocated])]) if len(freed) and len(allocated) else no_rows()
    if 2 * len(both) < len(timeline.steps.steady) or not len(both):
        return
    by_step = [memory[of[memory] == step] for step in both.tolist()]
    occurrences = tuple(Occurrence(int(rows[0]), Edit(removed_ops=rows), rows) for rows in by_step)
    if _is_noticeable(timeline, occurrences):
        yield _candidate(timeline, occurrences, freed, allocated, certain=False)


def _by_frame(timeline: Timeline, frames: IntArray, memory: IntArray) -> list[Occurrence]:
    """One occurrence per call. What the allocator does in a step counts for its first call that empties the cache."""
    of = timeline.steps.of
    owner: dict[int, int] = {}
    for row in frames[is_named(timeline.trace, frames, _CALL.search)].tolist():
        owner.setdefault(int(of[row]), row)
    found = []
    for row in frames.tolist():
        mine = memory[of[memory] == of[row]] if owner.get(int(of[row])) == row else no_rows()
        gone = np.sort(np.append(mine, row))
        found.append(Occurrence(row, Edit(removed_ops=gone), outermost(timeline, gone)))
    return found


def _is_noticeable(timeline: Timeline, occurrences: tuple[Occurrence, ...]) -> bool:
    rows = distinct(np.concatenate([one.cost_rows for one in occurrences]))
    return is_noticeable(timeline, rows, _NOTICEABLE_SHARE)


def _candidate(
    timeline: Timeline, occurrences: tuple[Occurrence, ...], freed: IntArray, allocated: IntArray, *, certain: bool
) -> Candidate:
    anchors = np.array([one.anchor for one in occurrences], dtype=np.int64)
    events = events_of(timeline, in_typical_step(timeline, anchors))
    collects = bool(is_named(timeline.trace, anchors, _COLLECT.search).any())
    return Candidate(
        what="each step runs the garbage collector" if collects else "each step gives the allocator's memory back",
        remedy="leaving it to Python" if collects else "keeping the memory",
        occurrences=occurrences,
        evidence=(
            Evidence("calls", "such calls per step", count_per_step(timeline, anchors), "", events),
            Evidence("freed", "frees on the device per step", count_per_step(timeline, freed), ""),
            Evidence("allocated", "allocations on the device per step", count_per_step(timeline, allocated), ""),
        ),
        probability=0.95 if certain else 0.6,
    )


PATTERN = Pattern(
    code="TAP110",
    slug="cache-emptied-in-loop",
    title="Memory given back in every step",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
