"""compile-inactive: the program compiles its model, and what runs is the model as it was.

Why it is slow: nothing is fused and every operator is dispatched from Python; the gain that `torch.compile` was written
for is missing, silently: a condition that is not met, a compiled copy that nobody calls, an error that is suppressed.
Trace: no compiled region, no Triton kernel and no graph launch in the steady steps.
Edit: what compiling would do at the least: chains of elementwise operators shrink to one and a half passes each, and on
a device the host's part of the model's forward to 0.6 (no dispatch of fused operators).
Gate: recordings in which anything compiled ran; sources that compile nothing, or only where they are asked to (the
source decides: without its word there is no finding).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.chains import Chain, chains
from ..timeline.columns import distinct
from ..timeline.compiled import runs_compiled
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.roots import by_model_call, model_calls
from ..timeline.select import count_per_step
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_PASSES_LEFT = 1.5
_HOST_LEFT = 0.6


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model call site, if nothing compiled ran."""
    trace = timeline.trace
    if not len(timeline.steps.steady) or runs_compiled(timeline) or any("GraphLaunch" in name for name in trace.names):
        return
    fused = chains(timeline)
    if not fused:
        return
    by_head = {int(chain.rows[0]): chain for chain in fused}
    heads = np.array(sorted(by_head), dtype=np.int64)
    calls = set(model_calls(timeline).tolist())
    occurrences = [
        _occurrence(timeline, anchor, [by_head[row] for row in rows.tolist()], is_call=anchor in calls)
        for anchor, rows in by_model_call(timeline, heads)
    ]
    operators = np.sort(np.concatenate([chain.rows for chain in fused]))
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="nothing of the model runs compiled",
            remedy="the compiled model",
            occurrences=group,
            evidence=(
                Evidence("regions", "compiled regions in the recording", 0, ""),
                Evidence(
                    "elementwise",
                    "elementwise operators that could be fused, per step",
                    count_per_step(timeline, operators),
                    "",
                ),
            ),
            probability=0.8,
            needs_source=True,
        )


def _occurrence(timeline: Timeline, anchor: int, chained: list[Chain], *, is_call: bool) -> Occurrence:
    by_factor: dict[float, list[IntArray]] = {}
    for chain in chained:
        work = chain.hosts if timeline.is_cpu_only else chain.device
        by_factor.setdefault(round(min(1.0, _PASSES_LEFT / len(chain.rows)), 3), []).append(work)
    scales = [Scale(distinct(np.concatenate(parts)), factor) for factor, parts in by_factor.items()]
    costs = distinct(np.concatenate([scale.rows for scale in scales]))
    if is_call and not timeline.is_cpu_only:
        scales.append(Scale(np.array([anchor]), _HOST_LEFT))
    return Occurrence(anchor, Edit(scales=tuple(scales)), costs)


PATTERN = Pattern(
    code="TAP308",
    slug="compile-inactive",
    title="Compiled model does not run",
    fix=FixKind.ADVICE,
    find=find,
    needs=("launches",),
    group="launch-bound and compile",
)
