"""recompilation: compiled code is compiled again while steps run, because sizes (or other guarded values) change.

Why it is slow: `torch.compile` specialises on what it saw. A batch or image of another size fails the guards, and the
call compiles a further version, for seconds, until the limit is reached; from then on the function runs eagerly.
Trace: compilation (`_compile.compile_inner`, `entire_frame_compile`, frames of torch/_dynamo) in steady steps, and
compiled regions whose second number grows: `Torch-Compiled Region: 0/3`.
Edit: the compilations of the steady steps do not happen.
Gate: compilation in the first steps only (`compile-inside-measured`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct
from ..timeline.compiled import compilations, region_id, regions
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import events_of, outermost, steady
from ..timeline.sites import group_by_site
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per call site that compiles in steady steps."""
    compiling = steady(timeline, compilations(timeline))
    if not len(compiling):
        return
    entered = steady(timeline, regions(timeline))
    steps = distinct(timeline.steps.of[compiling])
    evidence = (
        Evidence(
            "compilations", "compilations in the steady steps", len(compiling), "", events_of(timeline, compiling)
        ),
        Evidence("steps", "steady steps that compile", f"{len(steps)} of {len(timeline.steps.steady)}", ""),
        Evidence("versions", "most versions compiled of one function", _versions(timeline, entered), ""),
        Evidence("sizes", "sizes that compiled code was called with", _sizes(timeline, entered), ""),
    )
    for group in group_by_site(timeline, compiling):
        yield Candidate(
            what="compiled code is compiled again while it runs",
            remedy="compiling once for all sizes",
            occurrences=tuple(
                Occurrence(row, Edit(removed_ops=np.array([row])), np.array([row])) for row in group.tolist()
            ),
            evidence=evidence,
            probability=0.95,
        )


def _versions(timeline: Timeline, entered: IntArray) -> int:
    """The highest second number of a region, from 1."""
    numbers = [region_id(name)[1] for name in {timeline.trace.name_of(row) for row in entered.tolist()}]
    return max(numbers, default=NONE) + 1


def _sizes(timeline: Timeline, entered: IntArray) -> str:
    """Whether the first tensors that compiled code works on differ in size from call to call: "they vary", "always the
    same", or "not recorded"."""
    trace = timeline.trace
    seen: dict[int, set[object]] = {}
    operators = trace.rows(Category.CPU_OP)
    for row in outermost(timeline, entered).tolist():
        inside = operators[np.searchsorted(operators, row + 1) :]
        first = next((one for one in inside[:40].tolist() if trace.inputs_of(one).shape(0)), NONE)
        if first != NONE and trace.ts_ns[first] < trace.end_ns[row]:
            seen.setdefault(region_id(trace.name_of(row))[0], set()).add(trace.inputs_of(first).shape(0))
    if not seen:
        return "not recorded"
    return "they vary" if any(len(sizes) > 1 for sizes in seen.values()) else "always the same"


PATTERN = Pattern(
    code="TAP305",
    slug="recompilation",
    title="Compiled again and again",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="launch-bound and compile",
)
