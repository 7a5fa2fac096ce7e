"""graph-break: a compiled function is left in its middle, and entered again behind what could not be compiled.

Why it is slow: nothing is fused across the break, tensors that were to stay inside are written out, each part checks
its guards anew, and CUDA graphs cover only pieces. What stands at the break, `.item()` say, often makes the host wait.
Trace: compiled regions inside, or right behind, a compiled region of the same call, frames named
`torch_dynamo_resume_in_<function>_at_<line>`, and operators between them that run eagerly.
Edit: what runs eagerly between the parts, and the look-ups of the further parts, go; the host does not wait there.
Gate: functions that are compiled whole; regions that follow each other because two functions are compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.compiled import CACHE_LOOKUP, REGION, break_line, compilations, regions, resumptions
from ..timeline.edit import Edit, no_rows
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, launched_by, outermost, steady
from ..timeline.sites import is_library_frame
from ..timeline.transfers import waits_in
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_REACH = 8
"""Events before a part, in the function that was left, among which the one that broke the graph is looked for."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function and place at which its graph breaks."""
    entered = steady(timeline, regions(timeline))
    parts = _further_parts(timeline, entered)
    if not len(parts):
        return
    whole = outermost(timeline, entered)
    broken = {occurrence.anchor: (occurrence, line) for occurrence, line in _occurrences(timeline, parts)}
    for group in by_site(timeline, [occurrence for occurrence, _ in broken.values()]):
        rows = np.array([occurrence.anchor for occurrence in group], dtype=np.int64)
        lines = {broken[row][1] for row in rows.tolist()} - {NONE}
        yield Candidate(
            what="a compiled function is left in its middle and entered again",
            remedy="one graph",
            occurrences=group,
            evidence=(
                Evidence(
                    "breaks",
                    "breaks here per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("calls", "calls of compiled code per step", count_per_step(timeline, whole), ""),
                Evidence("line", "the function is resumed behind line", ", ".join(map(str, sorted(lines))) or "?", ""),
            ),
            probability=0.95,
        )


def _further_parts(timeline: Timeline, entered: IntArray) -> IntArray:
    """Regions that go on with a function: those that hold a resumed frame, else those inside another region."""
    resumed = steady(timeline, resumptions(timeline))
    held = inside(timeline, resumed, outermost(timeline, entered)) if len(resumed) else no_rows()
    if len(held):
        parents = timeline.tree.parent[resumed[held != NONE]]
        return parents[[timeline.trace.name_of(row).startswith(REGION) for row in parents.tolist()]].astype(np.int64)
    return np.setdiff1d(entered, outermost(timeline, entered))


def _occurrences(timeline: Timeline, parts: IntArray) -> Iterator[tuple[Occurrence, int]]:
    """What each break costs, and the line of the function that it stands at; NONE if no frame names it."""
    trace, tree = timeline.trace, timeline.tree
    compiling = set(compilations(timeline).tolist())
    for part in np.sort(parts).tolist():
        parent = int(tree.parent[part])
        siblings = tree.children(parent) if parent != NONE else no_rows()
        at = int(np.searchsorted(siblings, part))
        between: list[int] = []
        lookups: list[int] = []
        for row in reversed(siblings[max(at - _REACH, 0) : at].tolist()):
            name = trace.name_of(row)
            if name == CACHE_LOOKUP:
                lookups.append(row)
            elif row in compiling or name.startswith(REGION) or _is_compiled_call(name):
                break
            elif trace.cat[row] in (Category.CPU_OP, Category.PYTHON_FUNCTION):
                between.append(row)
        anchor = between[0] if between else part
        gone = np.array(sorted([*between, *lookups]), dtype=np.int64)
        waits = [rows for rows in waits_in(timeline, gone) if len(rows)] if len(gone) else []
        edit = Edit(removed_ops=gone, unsynced=np.concatenate([no_rows(), *waits]))
        device = np.concatenate([no_rows(), *launched_by(timeline, gone)]) if len(gone) else gone
        held = [break_line(trace.name_of(row)) for row in tree.children(part).tolist()]
        line = next((line for line in held if line != NONE), NONE)
        yield Occurrence(anchor, edit, gone if timeline.is_cpu_only else device), line


def _is_compiled_call(name: str) -> bool:
    """Whether a frame is the wrapper that runs a compiled graph."""
    return is_library_frame(name) and not name.startswith("<built-in") and "torch/_" in name


PATTERN = Pattern(
    code="TAP304",
    slug="graph-break",
    title="Compiled function left in its middle",
    fix=FixKind.ADVICE,
    find=find,
    needs=("stack",),
    group="launch-bound and compile",
)
