"""explicit-synchronize: the program stops for the device by its own wish, in every step.

Why it is slow: `torch.cuda.synchronize()` (left over from timing or debugging) waits until the queue is empty; until
the host has launched the next work the device has nothing to do. `CUDA_LAUNCH_BLOCKING=1` does so after every kernel.
Trace: a device, stream or event synchronisation that no operator asked for; or launches that end with their kernels.
Edit: the waits go; blocking launches take what a launch takes.
Gate: synchronisations of operators (other patterns), of loader threads and of the profiler; those after which the
device never idles; those that most steps do without.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_named
from ..timeline.edit import Edit, Scale
from ..timeline.model import Phase, Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, steady, us_per_step
from ..timeline.sites import group_by_site
from ..timeline.transfers import idle_us_per_step, sync_calls
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .waiting import waiting_candidates

_LEAST_IDLE_SHARE = 0.005
_BLOCKING_SHARE = 0.9
"""Share of a trace's launches that end with their kernels from which on the program runs with blocking launches."""
_FEWEST_LAUNCHES = 20
_LONG_KERNEL_NS = 20_000
"""Shorter kernels may be done before their launch returns, by the clocks' exactness."""
_LAUNCH_US = 6.0
"""What a kernel launch takes on the host."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that synchronises; one for blocking launches."""
    if timeline.is_cpu_only:
        return
    calls = sync_calls(timeline)
    calls = calls[(timeline.tree.op[calls] == NONE) & (timeline.phase[calls] != Phase.DATA)]
    yield from waiting_candidates(
        timeline,
        _telling(timeline, calls),
        what="the program waits for the device by its own wish",
        remedy="doing without",
        counted="synchronisations per step",
    )
    yield from _blocking_launches(timeline)


def _telling(timeline: Timeline, calls: IntArray) -> IntArray:
    """Calls of sites that most of the steady steps go through, with idle time behind them: no more can be saved."""
    steps = len(timeline.steps.steady)
    kept = [
        group
        for group in group_by_site(timeline, calls)
        if 2 * len(np.unique(timeline.steps.of[group])) > steps
        and idle_us_per_step(timeline, group) >= _LEAST_IDLE_SHARE * timeline.step_us
    ]
    return np.sort(np.concatenate(kept)) if kept else calls[:0]


def _blocking_launches(timeline: Timeline) -> Iterator[Candidate]:
    trace, runtime = timeline.trace, timeline.launches.runtime
    kernels = steady(timeline, trace.rows(Category.KERNEL))
    kernels = kernels[runtime[kernels] != NONE]
    kernels = kernels[is_named(trace, runtime[kernels], lambda name: name.endswith("LaunchKernel"))]
    launches = runtime[kernels].astype(np.int64)
    blocking = trace.end_ns[launches] >= trace.end_ns[kernels]
    is_long = trace.dur_ns[kernels] >= _LONG_KERNEL_NS
    if is_long.sum() < _FEWEST_LAUNCHES or blocking[is_long].mean() < _BLOCKING_SHARE:
        return
    rows = launches[blocking]
    scales = tuple(
        Scale(rows[i : i + 1], min(_LAUNCH_US * 1000 / took, 1.0)) for i, took in enumerate(trace.dur_ns[rows].tolist())
    )
    yield Candidate(
        what="every launch waits for its kernel, as with CUDA_LAUNCH_BLOCKING=1",
        remedy="unsetting it",
        occurrences=(Occurrence(int(rows[0]), Edit(scales=scales), rows),),
        evidence=(
            Evidence(
                "launches",
                "launches that end with their kernels, per step",
                count_per_step(timeline, rows),
                "",
                events_of(timeline, in_typical_step(timeline, rows)),
            ),
            Evidence("wait", "time in them per step", round(us_per_step(timeline, rows) / 1000, 3), "ms"),
        ),
        probability=0.95,
    )


PATTERN = Pattern(
    code="TAP206",
    slug="explicit-synchronize",
    title="Program waits for the device by its own wish",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
    stage=Stage.IMPLEMENTATION,
)
