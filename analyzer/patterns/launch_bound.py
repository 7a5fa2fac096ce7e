"""launch-bound: the device waits between short kernels because the host cannot launch them fast enough.

Why it is slow: in eager mode every operator costs the host ten to fifty microseconds of Python, dispatch and launch;
kernels that are shorter leave the device idle.
Trace: many kernels per step, launched one by one, with short idle gaps before most of them, for which the host is to
blame (the queue was empty).
Edit: the host's part of the model's forward and backward shrinks to what a replayed CUDA graph costs
(`torch.compile(mode="reduce-overhead")`); the kernels stay as recorded, so a saturated device gains nothing.
Gate: steps that the device fills; long gaps (loading, decoding, cold start: not launches); work that graphs already
launch; CPU-only and device-only recordings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, median
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Phase, Timeline
from ..timeline.roots import by_model_call, model_calls
from ..timeline.select import count_per_step, device_rows, events_of, from_graph, in_typical_step, outermost, steady
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .late_launches import GRAPH_HOST_FACTOR, LEAST_IDLE_SHARE, LONGEST_LAUNCH_GAP_NS, late_host_us
from .occurrences import by_site

_MIN_KERNELS = 50
"""Kernels per step below which there is no model to speak of whose launches a graph could gather."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model call site, if the step waits for launches."""
    if timeline.is_cpu_only or not len(timeline.steps.steady):
        return
    device = device_rows(timeline)
    kernels = device[timeline.trace.cat[device] == Category.KERNEL]
    kernels = kernels[(timeline.launches.op[kernels] != NONE) & ~from_graph(timeline, kernels)]
    short_us = late_host_us(timeline, LONGEST_LAUNCH_GAP_NS)
    if count_per_step(timeline, kernels) < _MIN_KERNELS or short_us < LEAST_IDLE_SHARE * timeline.step_us:
        return
    idle_us = late_host_us(timeline, np.inf)
    occurrences = _occurrences(timeline, kernels)
    evidence = (
        Evidence(
            "kernels",
            "kernels launched one by one per step",
            count_per_step(timeline, kernels),
            "",
            events_of(timeline, in_typical_step(timeline, kernels)),
        ),
        Evidence("kernel", "median kernel", round(median(timeline.trace.dur_ns[kernels]) / 1e3, 1), "µs"),
        Evidence("gaps", "device idle in short gaps before launches, per step", round(short_us / 1000, 3), "ms"),
        Evidence("idle", "device idle in the step", round(timeline.breakdown.step_idle_pct, 1), "%"),
    )
    for group in by_site(timeline, occurrences):
        share = sum(len(one.cost_rows) for one in group) / len(kernels)
        yield Candidate(
            what="the device waits for the host to launch short kernels",
            remedy="launching the model as a graph",
            occurrences=group,
            evidence=evidence,
            cost_us_per_step=idle_us * share,
            probability=0.9,
        )


def _occurrences(timeline: Timeline, kernels: IntArray) -> list[Occurrence]:
    """One occurrence per model call: its host part is the call with the Python between its operators, and the
    operators of its backward. Without recorded calls: one per step, with the operators of forward and backward."""
    calls = set(model_calls(timeline).tolist())
    phases = (Phase.BACKWARD,) if calls else (Phase.FORWARD, Phase.BACKWARD)
    operators = _operators(timeline, phases)
    backward = dict(by_model_call(timeline, operators)) if calls else {}
    found: list[Occurrence] = []
    for anchor, rows in by_model_call(timeline, kernels):
        if anchor in calls:
            host = distinct(np.concatenate([[anchor], backward.get(anchor, no_rows())]))
        else:
            host = operators[timeline.steps.of[operators] == timeline.steps.of[rows[0]]]
        found.append(Occurrence(anchor, Edit(scales=(Scale(host, GRAPH_HOST_FACTOR),)), rows))
    return found


def _operators(timeline: Timeline, phases: tuple[Phase, ...]) -> IntArray:
    """Outermost operators of these phases of the steady steps."""
    rows = timeline.trace.rows(Category.CPU_OP)
    return outermost(timeline, steady(timeline, rows[is_among(timeline.phase[rows], phases)]))


PATTERN = Pattern(
    code="TAP301",
    slug="launch-bound",
    title="Step waits for kernel launches",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device", "launches"),
    group="launch-bound and compile",
    stage=Stage.HARDWARE,
)
