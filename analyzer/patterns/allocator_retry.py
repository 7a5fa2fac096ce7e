"""allocator-retry: in every step the allocator asks the device for memory, or gives it back to ask again.

Why it is slow: `cudaMalloc` and `cudaFree` wait for the device and take as long as hundreds of kernels, where the
caching allocator would hand out a block in a microsecond.
Trace: `cudaMalloc` (with or without `cudaFree`) in at least half of the steady steps, long after the start; with
`profile_memory=True` how much of the device is reserved.
Edit: the calls go.
Gate: the start of a program, where the cache fills; single steps; `empty_cache` frames (another pattern's); frees in a
trace that has neither stacks nor memory records, since `empty_cache` looks the same there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct
from ..timeline.edit import Edit
from ..timeline.memory import device_memory_bytes
from ..timeline.model import Timeline
from ..timeline.select import (
    are_in_most_steps,
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    runtime_calls,
)
from ..trace.model import Category
from .base import Candidate, FixKind, Occurrence, Pattern

_FREE = re.compile(r"^(cuda|hip)Free$|^cuMem(Unmap|Release)")
_ALLOCATE = re.compile(r"^(cuda|hip)Malloc$|^cuMem(Map|Create|Alloc)")
_EMPTIES = re.compile(r"\): empty_cache$")
_NOTICEABLE_SHARE = 0.001
_LEAST_STEPS = 3
_NEARLY_FULL = 0.85


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for the program: the sizes asked for are its own, whatever line asks."""
    if len(timeline.steps.steady) < _LEAST_STEPS or timeline.steps.is_cold:
        return
    allocated, freed = runtime_calls(timeline, _ALLOCATE), runtime_calls(timeline, _FREE)
    if not are_in_most_steps(timeline, allocated) or any(map(_EMPTIES.search, timeline.trace.names)):
        return
    reserved = _reserved_share(timeline)
    has_stacks = len(timeline.trace.rows(Category.PYTHON_FUNCTION)) > 0
    is_retry = are_in_most_steps(timeline, freed)
    if is_retry and not has_stacks and reserved is None:
        return
    rows = np.sort(np.concatenate([allocated, freed]))
    if not is_noticeable(timeline, rows, _NOTICEABLE_SHARE):
        return
    of = timeline.steps.of[rows]
    by_step = [rows[of == step] for step in distinct(of).tolist()]
    evidence = [
        Evidence(
            "allocated",
            "allocations on the device per step",
            count_per_step(timeline, allocated),
            "",
            events_of(timeline, in_typical_step(timeline, rows)),
        ),
        Evidence("freed", "frees on the device per step", count_per_step(timeline, freed), ""),
    ]
    if reserved is not None:
        evidence.append(Evidence("reserved", "device memory that the allocator holds", round(100 * reserved), "%"))
    yield Candidate(
        what="the allocator frees memory in each step and asks for it again"
        if is_retry
        else "the allocator asks the device for more memory in each step",
        remedy="sizes that fit what it holds (a smaller batch, fixed shapes, expandable_segments:True)",
        occurrences=tuple(Occurrence(int(own[0]), Edit(removed_ops=own), own) for own in by_step),
        evidence=tuple(evidence),
        probability=0.9 if reserved is not None and reserved >= _NEARLY_FULL else 0.7,
    )


def _reserved_share(timeline: Timeline) -> float | None:
    """The most that the allocator holds of a device's memory; None where the trace does not say."""
    memory = timeline.trace.memory
    shares = [
        int(memory.total_reserved_bytes[memory.device == device].max()) / total
        for device in distinct(memory.device).tolist()
        if (total := device_memory_bytes(timeline, device))
    ]
    return max(shares, default=None)


PATTERN = Pattern(
    code="TAP807",
    slug="allocator-retry",
    title="Allocator asks the device in every step",
    fix=FixKind.ADVICE,
    find=find,
    group="training loop and memory",
    stage=Stage.HARDWARE,
)
