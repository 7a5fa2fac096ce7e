"""trace-lacks-evidence: the recording cannot show what a longer profiler call would have shown.

What it is: the profiler ran without stacks, without shapes, without step marks, or on one side of the machine only.
Why it matters: rules that need what is missing stay silent, and findings lose their source line.
Trace: no Python frames and no `Call stack`; no `Input Dims`; no `ProfilerStep#`; no operators, or no device work.
Gate: where most of the device work comes from replayed graphs, no operator stands behind it, so stacks and shapes
would give nothing, and a recording of nothing has nothing to be told about.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Evidence
from ..timeline.model import Timeline
from ..timeline.select import device_rows, from_graph
from ..trace.model import NONE, Category
from .base import Candidate, FixKind, Pattern
from .missing import GIVES, NEED_OF, missing_options
from .registry import all_patterns


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for the whole recording, if it lacks anything that would tell more."""
    missing = missing_options(timeline)
    if not missing or not len(timeline.trace) or _mostly_replayed_graphs(timeline):
        return
    evidence = tuple(
        Evidence(f"missing-{NEED_OF[option]}", f"recorded without {option}", _served_by(option), "")
        for option in missing
    )
    yield Candidate(
        what=f"the trace was recorded without {_listed(missing)}",
        remedy=f"recording again would show {'; '.join(GIVES[option] for option in missing)}",
        occurrences=(),
        evidence=evidence,
        informational=True,
    )


def _served_by(option: str) -> str:
    """What the option gives, and which rules wait for it."""
    waiting = [pattern.slug for pattern in all_patterns() if NEED_OF[option] in pattern.needs]
    return f"{GIVES[option]}; needed by {', '.join(waiting)}" if waiting else GIVES[option]


def _mostly_replayed_graphs(timeline: Timeline) -> bool:
    """Whether operators are recorded, but over half of the device time was launched by none of them."""
    trace = timeline.trace
    device = device_rows(timeline)
    if not len(device) or not len(trace.rows(Category.CPU_OP)):
        return False
    replayed = device[(timeline.launches.op[device] == NONE) | from_graph(timeline, device)]
    return bool(trace.dur_ns[replayed].sum() > trace.dur_ns[device].sum() / 2)


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


PATTERN = Pattern(
    code="TAP990",
    slug="trace-lacks-evidence",
    title="Trace lacks evidence",
    fix=FixKind.SAFE,
    find=find,
    group="meta",
)
