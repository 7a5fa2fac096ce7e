"""per-image-postprocess-loop: a model's output is taken apart in a Python loop that reads values in each round.

Why it is slow: every round runs a handful of operators on a few numbers, so dispatch and launches take longer than the
arithmetic, and every value read makes the host wait for the device before it can go on.
Trace: in one execution of a function the same operators come back at least four times, and most rounds read a value
(`aten::item`, `is_nonzero`, `nonzero`, a copy to the host, a synchronisation) and few write into a tensor.
Edit: one round stays, with the arithmetic of all of them, and the Python time between calls shrinks to one round's.
Measured on a pose decoder (102 rounds of 17 joints in 6 people, CPU): the batched version took 8 % of the loop's time.
Gate: loops under 0.5 % of the step, loops over the layers of a model, loops of non-maximum suppression and of
assignments (patterns of their own), backward and optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..timeline.model import Timeline
from .base import Candidate, FixKind, Pattern
from .loops import Loop, has_own_pattern, loop_candidates, takes_apart


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that loops and reads."""

    def wanted(loop: Loop) -> bool:
        return takes_apart(timeline, loop) and not has_own_pattern(timeline, loop)

    yield from loop_candidates(
        timeline,
        wanted,
        what="results are taken apart one by one in a Python loop that reads values in every round",
        remedy="one batched pass and one copy to the host",
        probability=0.85,
    )


PATTERN = Pattern(
    code="TAP004",
    slug="per-image-postprocess-loop",
    title="Results taken apart one by one in Python",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="vision tasks",
)
