"""blocking-transfer: the host waits for each copy to the device although the memory is pinned.

Why it is slow: `.to(device)` and `.cuda()` wait for the copy unless told `non_blocking=True`; the host launches nothing
meanwhile.
Trace: a copy to the device from memory that is not pageable, and a stream synchronisation in the same operator.
Edit: the wait goes.
Gate: pageable memory (the copy waits in any case; `pageable-transfer` speaks of it); waits after which the device never
idles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..timeline.columns import distinct
from ..timeline.model import Timeline
from ..timeline.select import outer_op, outermost
from ..timeline.transfers import host_to_device, name_contains
from ..trace.model import NONE
from .base import Candidate, FixKind, Pattern
from .waiting import waiting_candidates


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that copies and waits."""
    copies = host_to_device(timeline)
    copies = copies[~name_contains(timeline, copies, "Pageable")]
    calls = timeline.launches.runtime[copies]
    hosts = distinct(np.array([outer_op(timeline, row) for row in calls[calls != NONE].tolist()], dtype=np.int64))
    yield from waiting_candidates(
        timeline,
        outermost(timeline, hosts),
        what="the host waits for copies from pinned memory to the device",
        remedy="copying with non_blocking=True",
        counted="operators that copy and wait, per step",
    )


PATTERN = Pattern(
    code="TAP202",
    slug="blocking-transfer",
    title="Host waits for a copy to the device",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
)
