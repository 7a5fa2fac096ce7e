"""cudnn-autotune-thrash: with `cudnn.benchmark` on, convolutions try all kernels again whenever a size changes.

Why it is slow: the trial runs every kernel that could do, allocates their workspaces and waits for each; it pays for
itself only if the same size comes again often. Multi-scale training, detection and other padded batches bring new sizes
in every step.
Trace: single convolutions in steady steps that run many algorithms, time them and give them workspaces, and sizes that
differ from step to step.
Edit: of each such call the last kernel stays, which is the one chosen; the call takes the host time that ordinary calls
take, and its waits go.
Gate: sizes that do not vary (a trial at the start costs nothing later); the several kernels of one algorithm (FFT,
Winograd in parts); trials in fewer than half of the steps (someone's validation size) are only a hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, is_named, median
from ..timeline.convolution_calls import ConvCalls, backward_rows, convolution_calls
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.roots import by_model_call
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, steady
from ..trace.model import NONE, Category, IntArray
from .autotuning import autotuning, kernels_tried, shapes_vary
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_MANY_FORWARD, _MANY_BACKWARD = 3, 4
"""Different algorithms in one call, from which they are trials; the backward runs two in any case."""
_TIMING = re.compile(r"(Event|Stream|Device)Synchronize|EventElapsedTime|(cuda|hip)(Malloc|Free)")
_FEW_CALLS = 2
"""Trials are timed and given workspaces: fewer such calls than this belong to no trial."""
_ONE_ALGORITHM = (re.compile(r"fft|gcgemm|flip_filter|complex"), re.compile(r"winograd_nonfused|(?<!scudnn_)sgemm_\d"))
"""Kernels that work together as one algorithm, under several names."""
_ORDINARY_CALL_US = 60.0
"""Host time of a convolution's call, where the trace has no call without trials."""
_SURE, _UNSURE = 0.9, 0.7
_ONCE = 0.4
"""Trials in fewer than half of the steps: hint."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model that keeps trying kernels."""
    if timeline.is_cpu_only or not any(name.endswith("onvolution") for name in timeline.trace.names):
        return
    calls = convolution_calls(timeline)
    is_on = autotuning(timeline)
    if not len(calls) or is_on is False:
        return
    trials = _trials(timeline, calls)
    if not len(trials) or not _sizes_are_open(timeline, calls):
        return
    steps = distinct(timeline.steps.of[trials])
    recurs = 2 * len(steps) >= len(timeline.steps.steady)
    factor = _host_factor(timeline, calls, trials)
    occurrences = [_occurrence(timeline, anchor, rows, factor) for anchor, rows in by_model_call(timeline, trials)]
    for group in by_site(timeline, occurrences):
        kernels = np.concatenate([occurrence.cost_rows for occurrence in group])
        yield Candidate(
            what="convolutions try all kernels again for each new input size",
            remedy="no benchmark, or few sizes,",
            occurrences=group,
            evidence=(
                Evidence(
                    "calls",
                    "convolutions that try kernels per step",
                    count_per_step(timeline, trials),
                    "",
                    events_of(timeline, in_typical_step(timeline, trials)),
                ),
                Evidence("kernels", "kernels tried in vain per step", count_per_step(timeline, np.sort(kernels)), ""),
                Evidence("sizes", "different inputs of the first convolution", _sizes(timeline, calls), ""),
                Evidence(
                    "steps",
                    "steps with trials, of those looked at",
                    f"{len(steps)} of {len(timeline.steps.steady)}",
                    "",
                ),
            ),
            probability=(_SURE if is_on else _UNSURE) if recurs else _ONCE,
        )


def _trials(timeline: Timeline, calls: ConvCalls) -> IntArray:
    """Calls, forward and backward, that run too many algorithms to need them all, and time them."""
    trace = timeline.trace
    runtime = steady(timeline, trace.rows(Category.RUNTIME))
    runtime = runtime[is_named(trace, runtime, _TIMING.search)]
    if len(runtime) < _FEW_CALLS:
        return no_rows()
    after = np.sort(np.concatenate([no_rows(), *backward_rows(timeline, calls)]))
    found: list[IntArray] = []
    for hosts, many in ((calls.rows, _MANY_FORWARD), (after, _MANY_BACKWARD)):
        owner = inside(timeline, runtime, hosts)
        timed = hosts[np.bincount(owner[owner != NONE], minlength=len(hosts)) >= _FEW_CALLS]
        tried = [
            len({_algorithm(trace.names[i]) for i in trace.name[rows].tolist()})
            for rows in kernels_tried(timeline, timed)
        ]
        found.append(timed[np.array(tried, dtype=np.int64) >= many])
    return np.sort(np.concatenate(found))


def _algorithm(kernel: str) -> str | int:
    """The algorithm that a kernel is part of: a number for those of several kernels, else its name."""
    return next((i for i, pattern in enumerate(_ONE_ALGORITHM) if pattern.search(kernel)), kernel)


def _sizes_are_open(timeline: Timeline, calls: ConvCalls) -> bool:
    """Whether sizes vary, or were not recorded."""
    return shapes_vary(timeline, calls) or not any(shape.data for shape in calls.shapes)


def _sizes(timeline: Timeline, calls: ConvCalls) -> int:
    first_of_step: dict[int, tuple[int, ...]] = {}
    for step, shape in zip(timeline.steps.of[calls.rows].tolist(), calls.shapes, strict=True):
        first_of_step.setdefault(step, shape.data)
    return len(set(first_of_step.values()))


def _host_factor(timeline: Timeline, calls: ConvCalls, trials: IntArray) -> float:
    """An ordinary call's host time over that of one with trials."""
    dur_ns = timeline.trace.dur_ns
    ordinary = calls.rows[~is_among(calls.rows, trials)]
    usual_ns = median(dur_ns[ordinary]) if len(ordinary) else _ORDINARY_CALL_US * 1000
    return round(min(usual_ns / max(median(dur_ns[trials]), 1.0), 1.0), 3)


def _occurrence(timeline: Timeline, anchor: int, trials: IntArray, factor: float) -> Occurrence:
    in_vain = np.sort(np.concatenate([no_rows(), *(rows[:-1] for rows in kernels_tried(timeline, trials))]))
    edit = Edit(scales=(Scale(in_vain, 0.0), Scale(trials, factor)), unsynced=trials)
    return Occurrence(anchor, edit, in_vain)


PATTERN = Pattern(
    code="TAP506",
    slug="cudnn-autotune-thrash",
    title="cuDNN tries kernels in every step",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="inefficient_conv",
    stage=Stage.HARDWARE,
)
