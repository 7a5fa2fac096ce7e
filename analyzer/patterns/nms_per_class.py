"""nms-per-class: non-maximum suppression is run in a loop, class by class or image by image, on a few boxes each time.

Why it is slow: each round selects its boxes (a boolean index waits for the device), suppresses, and collects what is
kept; with some hundred boxes in all, launches and waits take longer than the arithmetic.
Trace: in one execution of a function rounds that each hold `torchvision::nms`, at least four.
Edit: one round stays, with the arithmetic of all of them: `batched_nms` moves the boxes of each class apart and
suppresses once.
Gate: the loop inside torchvision's own `batched_nms`; more boxes than up to which it suppresses at once (1,000 on the
CPU, 5,000 on a device): beyond, it loops over the classes itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..timeline.model import Timeline
from ..timeline.select import steady
from ..trace.model import IntArray
from .base import Candidate, FixKind, Pattern
from .loops import Loop, loop_candidates

_NMS = ("torchvision::nms", "torchvision::_nms", "mmcv::nms")
_LIBRARY = "torchvision/ops/"
_MOST_BOXES_CPU = 1_000
_MOST_BOXES_DEVICE = 5_000


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that loops over suppressions."""
    rows = steady(timeline, timeline.trace.rows_named(_NMS))
    if len(rows) < 2:
        return
    most = _MOST_BOXES_CPU if timeline.is_cpu_only else _MOST_BOXES_DEVICE

    def wanted(loop: Loop) -> bool:
        inside = rows[(rows >= loop.repeat.units[0]) & (rows <= loop.rows(timeline)[-1])]
        if 2 * loop.rounds_with(timeline, inside) < loop.repeat.rounds:
            return False
        is_own = _LIBRARY in timeline.trace.name_of(loop.repeat.frame)
        return not is_own and _boxes(timeline, inside) <= most

    yield from loop_candidates(
        timeline,
        wanted,
        what="non-maximum suppression runs class by class or image by image",
        remedy="one batched_nms",
        probability=0.9,
    )


def _boxes(timeline: Timeline, rows: IntArray) -> int:
    """Boxes of several calls together; 0 where sizes were not recorded."""
    shapes = [timeline.trace.inputs_of(row).shape(0) for row in rows.tolist()]
    return int(np.sum([shape[0] for shape in shapes if shape]))


PATTERN = Pattern(
    code="TAP001",
    slug="nms-per-class",
    title="Non-maximum suppression in a loop",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("stack",),
    group="vision tasks",
)
