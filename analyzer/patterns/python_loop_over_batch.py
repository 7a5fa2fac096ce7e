"""python-loop-over-batch: a Python loop does for one sample after another what tensors do for the batch at once.

Why it is slow: each round dispatches (and on a device launches) the same operators on one sample, and most of them are
done sooner than they are called; the backward pass repeats as many small operators, and adds up gradients that each
fill only one sample's part.
Trace: in one execution of a function the same operators or calls come back at least four times.
Edit: one round stays, with the arithmetic of all of them (their time less the fixed cost of each call), forward and
backward, and the Python time between calls shrinks to one round's.
Measured on the CPU, one thread: a loss over 16 samples of 19 x 32 x 32, summed in a loop, took 28 ms forward and
backward, batched 9.9; 64 boxes encoded one by one 3.2 ms, at once 0.04, with `torch.vmap` 0.19.
Gate: loops under 0.5 % of the step, the layers of a model, loops that read values and write none
(`per-image-postprocess-loop`), non-maximum suppression and assignments (patterns of their own), training loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..timeline.model import Timeline
from .base import Candidate, FixKind, Pattern
from .loops import Loop, has_own_pattern, loop_candidates, takes_apart


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that loops."""

    def wanted(loop: Loop) -> bool:
        return not takes_apart(timeline, loop) and not has_own_pattern(timeline, loop)

    yield from loop_candidates(
        timeline,
        wanted,
        what="a Python loop runs the same operators for one sample after another",
        remedy="one pass over the batch",
        probability=0.8,
    )


PATTERN = Pattern(
    code="TAP302",
    slug="python-loop-over-batch",
    title="Python loop over the batch",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="launch-bound and compile",
)
