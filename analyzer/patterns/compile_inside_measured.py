"""compile-inside-measured: the recording begins with compilation, so its first steps say nothing about running.

Why it is slow: it is not; it only looks so. The first call of compiled code compiles, hundreds of times longer than a
step. Whoever averages over those steps measures the compiler.
Trace: compilation (frames of torch/_dynamo or torch/_inductor, `entire_frame_compile`) in steps before the steady ones.
Edit: none. Those steps are left out of every figure; the finding says so and predicts nothing.
Gate: compilation in steady steps (`recompilation`); recordings of one step; compilation under one steady step's time.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Evidence, Stage
from ..timeline.compiled import compilations
from ..timeline.model import Timeline
from ..timeline.select import events_of
from .base import Candidate, FixKind, Pattern


def find(timeline: Timeline) -> Iterator[Candidate]:
    """At most one candidate, for the recording."""
    steps = timeline.steps
    compiling = compilations(timeline)
    is_steady = steps.are_steady(compiling)
    compiling = compiling[~is_steady]
    seconds = float(timeline.trace.dur_ns[compiling].sum()) / 1e9
    if steps.is_cold or not len(compiling) or is_steady.any() or seconds * 1e6 < timeline.step_us:
        return
    left_out = int(steps.is_warmup.sum())
    yield Candidate(
        what="the recording holds the compilation of the model; the steps that compile are left out of all figures",
        remedy="recording after a warm-up",
        occurrences=(),
        evidence=(
            Evidence("compiling", "time spent compiling", round(seconds, 2), "s", events_of(timeline, compiling)),
            Evidence("left-out", "steps left out", left_out, ""),
            Evidence("steady", "steps that figures are taken over", len(steps.steady), ""),
        ),
        informational=True,
    )


PATTERN = Pattern(
    code="TAP306",
    slug="compile-inside-measured",
    title="Compilation within the recording",
    fix=FixKind.ADVICE,
    find=find,
    group="launch-bound and compile",
    stage=Stage.HARDWARE,
)
