"""host-scalar-read: Python asks for the value of a device tensor, and the device runs dry while the host answers.

Why it is slow: `.item()`, `float(t)`, `if t`, `print(t)` wait until everything queued is done; until the host has
launched the next work the device has nothing to do.
Trace: `aten::item`, `aten::is_nonzero` or `aten::_local_scalar_dense`, called from Python, that wait for the device.
Edit: the wait goes; the host runs on.
Gate: reads after which the device never idles, reads of host tensors, all reads on a CPU; the gradient scaler's own
read (another pattern).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..timeline.columns import is_among
from ..timeline.model import Timeline
from ..timeline.transfers import outermost_named
from .base import Candidate, FixKind, Pattern
from .scaler import scaler_reads
from .waiting import waiting_candidates

_READS = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense", "aten::equal", "aten::allclose")


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that reads device values."""
    if timeline.is_cpu_only:
        return
    reads = outermost_named(timeline, _READS)
    reads = reads[~is_among(reads, scaler_reads(timeline))]
    yield from waiting_candidates(
        timeline,
        reads,
        what="the host reads a value from the device and waits for it",
        remedy="reading it later, or not at all,",
        counted="values read per step",
    )


PATTERN = Pattern(
    code="TAP203",
    slug="host-scalar-read",
    title="Host waits to read a device value",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
)
