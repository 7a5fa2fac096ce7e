"""What the detector says of a step, part by part: the windows of one step each, with the figures of their regions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..findings import DetectorSummary
from ..timeline.columns import distinct, is_among
from ..timeline.model import Timeline
from ..timeline.select import typical_step
from ..trace.model import HOST_CATEGORIES, NONE, Category, FloatArray, Int32Array, IntArray
from .model import Windows, WindowScores
from .spans import launch_moments, measure_costs

_LEAST_PROBABLE = 0.05
_MOST_KINDS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One window of one step, which stands for its like in the other steps."""

    window: int
    """Index into the windows."""
    name: str
    """Of its region."""
    step: int
    """Index of the step, as in `Steps`."""
    steps: int
    """How many of the steps looked at have its region."""
    start_ns: int
    """From the beginning of the step."""
    end_ns: int
    bad: float
    """P(bad): of all steps; of a single one, where the part is an anomaly."""
    kinds: tuple[tuple[str, float], ...]
    """The likeliest anti-patterns, with P(kind); those that are hardly likely are left out."""
    share: float
    """Of the step's time, 0 to 1: the host's or the device's, whichever is the greater part of its own."""
    is_unknown: bool
    is_single: bool
    anchor: int
    """The host event that costs most in it, for its place in the source; NONE if there is none."""


def usual_parts(timeline: Timeline, scores: WindowScores) -> tuple[Part, ...]:
    """The parts of the typical step in order of time; after them those that other steps have."""
    windows = scores.windows
    if not len(windows):
        return ()
    typical = _typical(timeline, windows)
    step_of_region = np.full(len(windows.regions), len(timeline.steps))
    np.minimum.at(step_of_region, windows.region, windows.step)
    step_of_region[windows.region[windows.step == typical]] = typical
    shown = np.flatnonzero(windows.step == step_of_region[windows.region])
    return _parts(timeline, scores, shown[np.argsort(windows.step[shown] != typical, kind="stable")], scores.bad)


def odd_parts(timeline: Timeline, scores: WindowScores) -> tuple[Part, ...]:
    """Parts that are bad in one step only: anomalies, which say nothing about the next run."""
    return _parts(timeline, scores, _odd(scores), scores.each_bad)


def _odd(scores: WindowScores) -> IntArray:
    return np.flatnonzero(scores.is_single & ~scores.is_unknown)


def summarize_parts(timeline: Timeline, scores: WindowScores) -> DetectorSummary:
    """All of it in a few figures."""
    parts = usual_parts(timeline, scores)
    bad = [part for part in parts if part.bad >= scores.threshold and not part.is_unknown]
    worst = max(bad, key=lambda part: part.bad * part.share, default=None)
    return DetectorSummary(
        windows=len(parts),
        bad=len(bad),
        unknown=sum(part.is_unknown for part in parts),
        single=len(_odd(scores)),
        worst=worst.name if worst else "",
        worst_probability=round(worst.bad, 3) if worst else 0.0,
        worst_kind=worst.kinds[0][0] if worst and worst.kinds else "",
    )


def shares(timeline: Timeline, windows: Windows, first: IntArray, last: IntArray) -> FloatArray:
    """For each stretch of one step, from window `first` to window `last`, its share of the step, as in `Part`."""
    costs = measure_costs(timeline, launch_moments(timeline))
    return costs.share(windows.step[first].astype(np.int64), windows.start_ns[first], windows.end_ns[last])


def anchors(timeline: Timeline, windows: Windows) -> IntArray:
    """Shape (windows,): the host event of each that costs most, for backward work its forward operator; NONE for none.

    An event costs its own time, with that of the runtime's calls in it, and that of the device work that it launched,
    each as a share of all such time. What goes on after the window's end is taken only where there is nothing else.
    """
    trace, tree, op = timeline.trace, timeline.tree, timeline.launches.op
    is_host = is_among(trace.cat, HOST_CATEGORIES)
    is_own = (trace.cat != Category.RUNTIME) | (tree.parent == NONE)
    owner = np.where(is_own, np.arange(len(trace)), tree.parent)
    device = timeline.device_rows
    cost = _shares_by(owner, np.flatnonzero(is_host), tree.self_ns) + _shares_by(op, device, trace.dur_ns)
    rows = np.flatnonzero(is_host & (windows.of != NONE) & (cost > 0.0))
    is_inside = trace.end_ns[rows] <= windows.end_ns[windows.of[rows]]
    rows = rows[np.lexsort((cost[rows], is_inside, windows.of[rows]))]
    found = np.full(len(windows), NONE, dtype=np.int64)
    found[windows.of[rows]] = rows  # of several rows of a window the last, dearest one stays
    forward = np.append(timeline.forward_op, NONE)[found]
    return np.where(forward != NONE, forward, found)


def _shares_by(owner: IntArray | Int32Array, rows: IntArray, took_ns: IntArray) -> FloatArray:
    """Shape (n,): the time of `rows` by their owners, as a share of all of it."""
    rows = rows[owner[rows] != NONE]
    total = np.bincount(owner[rows], weights=took_ns[rows], minlength=len(owner))
    return total / max(total.sum(), 1.0)


def _typical(timeline: Timeline, windows: Windows) -> int:
    """The step that stands for the others: of those that were cut the one nearest to the median."""
    step = typical_step(timeline)
    if step in windows.step:
        return step
    cut = np.unique(windows.step)
    durations = timeline.steps.duration_ns
    return int(cut[np.argmin(np.abs(durations[cut] - durations[step]))])


def _parts(timeline: Timeline, scores: WindowScores, chosen: IntArray, bad: FloatArray) -> tuple[Part, ...]:
    windows, steps = scores.windows, timeline.steps
    share, anchor = shares(timeline, windows, chosen, chosen), anchors(timeline, windows)
    pairs = distinct(windows.region * np.int64(len(steps)) + windows.step)
    with_region = np.bincount(pairs // max(len(steps), 1), minlength=len(windows.regions))
    return tuple(
        Part(
            window=at,
            name=windows.regions[windows.region[at]],
            step=int(windows.step[at]),
            steps=int(with_region[windows.region[at]]),
            start_ns=int(windows.start_ns[at] - steps.start_ns[windows.step[at]]),
            end_ns=int(windows.end_ns[at] - steps.start_ns[windows.step[at]]),
            bad=float(bad[at]),
            kinds=likeliest(scores.kinds, scores.kind[at]),
            share=float(share[number]),
            is_unknown=bool(scores.is_unknown[at]),
            is_single=bool(scores.is_single[at]),
            anchor=int(anchor[at]),
        )
        for number, at in enumerate(chosen.tolist())
    )


def likeliest(kinds: tuple[str, ...], probability: FloatArray) -> tuple[tuple[str, float], ...]:
    """The kinds that may be meant, the likeliest first."""
    order = np.argsort(-probability, kind="stable")[:_MOST_KINDS]
    return tuple((kinds[at], float(probability[at])) for at in order.tolist() if probability[at] >= _LEAST_PROBABLE)
