"""memory-nearly-full: the step needs almost all of the device's memory.

Why it matters: an input a little larger ends the run, the allocator has no room left to keep blocks of the right size
and has to return and ask again, and nothing can be traded for speed (a larger batch, no checkpointing).
Trace: the most that is allocated at once in the steady steps, against the device's memory.
Gate: traces without `profile_memory=True` or without the device's size; memory that the allocator only keeps reserved;
peaks under 90 per cent; a recording of the start alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Evidence, Stage
from ..timeline.memory import device_memory_bytes, memory_uses
from ..timeline.model import Timeline
from .base import Candidate, FixKind, Pattern

_FULL = 0.9
_BYTES_PER_GB = 1e9


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per device whose memory nearly runs out."""
    steady = timeline.steps.steady
    if not len(timeline.trace.memory.ts_ns) or not len(steady) or timeline.steps.is_cold:
        return
    start, end = int(timeline.steps.start_ns[steady[0]]), int(timeline.steps.end_ns[steady[-1]])
    for use in memory_uses(timeline):
        total, peak = device_memory_bytes(timeline, use.device), use.peak_bytes(start, end)
        if not use.is_absolute or not total or peak < _FULL * total:
            continue
        yield Candidate(
            what=f"the memory of device {use.device} is nearly full",
            remedy="a smaller batch, lower precision or checkpointing would leave room",
            occurrences=(),
            evidence=(
                Evidence("peak", "most allocated at once", round(peak / _BYTES_PER_GB, 2), "GB"),
                Evidence("total", "memory of the device", round(total / _BYTES_PER_GB, 2), "GB"),
                Evidence("share", "share in use at the peak", round(100 * peak / total), "%"),
            ),
            informational=True,
        )


PATTERN = Pattern(
    code="TAP809",
    slug="memory-nearly-full",
    title="Device memory is nearly full",
    fix=FixKind.ADVICE,
    find=find,
    group="training loop and memory",
    stage=Stage.HARDWARE,
)
