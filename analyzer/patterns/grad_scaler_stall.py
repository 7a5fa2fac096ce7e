"""grad-scaler-stall: the gradient scaler reads on the host whether gradients overflowed, before each optimizer step.

Why it is slow: `scaler.step(optimizer)` must know whether to skip the step, so the host waits for the whole backward
pass; only then does it launch the optimizer's work, and the device is idle meanwhile.
Trace: reads of device values inside `GradScaler` that wait, between its check of the gradients and `Optimizer.step`.
Edit: the waits go: a fused optimizer takes the flag on the device, and bf16 needs no scaler.
Gate: optimizers that take the flag (there is no read then); reads after which the device never idles; the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Stage
from ..timeline.model import Timeline
from .base import Candidate, FixKind, Pattern
from .scaler import scaler_reads
from .waiting import waiting_candidates


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that steps through a scaler."""
    if timeline.is_cpu_only:
        return
    yield from waiting_candidates(
        timeline,
        scaler_reads(timeline),
        what="the gradient scaler waits for the backward pass before the optimizer may step",
        remedy="an optimizer that checks on the device",
        counted="values the scaler reads per step",
    )


PATTERN = Pattern(
    code="TAP406",
    slug="grad-scaler-stall",
    title="Gradient scaler waits for the backward pass",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="precision",
    stage=Stage.IMPLEMENTATION,
)
