"""compiled-still-launch-bound: compiled code still launches its kernels one by one, and the device waits for them.

Why it is slow: the default mode of `torch.compile` fuses kernels but launches each from Python; with kernels of a few
microseconds the host cannot keep up.
Trace: many kernels launched inside compiled regions (and `CompiledFunctionBackward`) by calls of their own, no graph
launch among them, with short idle gaps before them for which the late host is to blame.
Edit: the host's part of the compiled regions shrinks to what a CUDA graph's replay costs; the kernels stay.
Gate: regions that a graph launches already; devices that are kept busy; few kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import median
from ..timeline.compiled import BACKWARD, regions
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import (
    count_per_step,
    device_rows,
    events_of,
    from_graph,
    in_typical_step,
    inside,
    outermost,
    steady,
)
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .late_launches import GRAPH_HOST_FACTOR, LEAST_IDLE_SHARE, LONGEST_LAUNCH_GAP_NS, late_host_us
from .occurrences import by_site

_MIN_KERNELS = 30


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that enters compiled code."""
    entered = outermost(timeline, steady(timeline, regions(timeline)))
    if timeline.is_cpu_only or not len(entered):
        return
    hosts = np.sort(np.concatenate([entered, steady(timeline, timeline.trace.rows_named(BACKWARD))]))
    kernels = device_rows(timeline)
    kernels = kernels[(timeline.trace.cat[kernels] == Category.KERNEL) & ~from_graph(timeline, kernels)]
    runtime = timeline.launches.runtime[kernels]
    kernels, runtime = kernels[runtime != NONE], runtime[runtime != NONE]
    owner = inside(timeline, runtime.astype(np.int64), hosts)
    kernels, owner = kernels[owner != NONE], owner[owner != NONE]
    idle_us = late_host_us(timeline, LONGEST_LAUNCH_GAP_NS, kernels)
    if count_per_step(timeline, kernels) < _MIN_KERNELS or idle_us < LEAST_IDLE_SHARE * timeline.step_us:
        return
    evidence = (
        Evidence(
            "kernels",
            "kernels of compiled code launched one by one per step",
            count_per_step(timeline, kernels),
            "",
            events_of(timeline, in_typical_step(timeline, kernels)),
        ),
        Evidence("kernel", "median kernel", round(median(timeline.trace.dur_ns[kernels]) / 1e3, 1), "µs"),
        Evidence("gaps", "device idle before their launches, per step", round(idle_us / 1e3, 3), "ms"),
    )
    for group in by_site(timeline, _occurrences(timeline, hosts, kernels, owner, set(entered.tolist()))):
        share = sum(len(one.cost_rows) for one in group) / len(kernels)
        yield Candidate(
            what="compiled code launches short kernels one by one, and the device waits for them",
            remedy="launching them as a graph",
            occurrences=group,
            evidence=evidence,
            cost_us_per_step=idle_us * share,
            probability=0.9,
        )


def _occurrences(
    timeline: Timeline, hosts: IntArray, kernels: IntArray, owner: IntArray, entered: set[int]
) -> Iterator[Occurrence]:
    """One per region of forward code; the compiled backward of a step belongs to the step's first one."""
    groups: dict[int, list[int]] = {}
    steps = timeline.steps.of
    first_of_step: dict[int, int] = {}
    for row in sorted(entered):
        first_of_step.setdefault(int(steps[row]), row)
    for number, host in enumerate(hosts.tolist()):
        anchor = host if host in entered else first_of_step.get(int(steps[host]), NONE)
        if anchor != NONE:
            groups.setdefault(anchor, []).append(number)
    for anchor, numbers in groups.items():
        edit = Edit(scales=(Scale(hosts[numbers], GRAPH_HOST_FACTOR),))
        launched = kernels[np.isin(owner, numbers)]
        if len(launched):
            yield Occurrence(anchor, edit, launched)


PATTERN = Pattern(
    code="TAP307",
    slug="compiled-still-launch-bound",
    title="Compiled code waits for its launches",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device", "launches"),
    group="launch-bound and compile",
    stage=Stage.HARDWARE,
)
