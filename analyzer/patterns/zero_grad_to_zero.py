"""zero-grad-to-zero: gradients are filled with zeros before each step instead of being dropped.

Why it is slow: each gradient is written once to be zero, and the backward pass then reads it, adds to it and writes it
again, where it could have put its own result there; per parameter that is two operators, on a device two launches.
Trace: runs of `aten::zero_` over tensors of the gradients' shapes, or `aten::_foreach_zero_`, for a good part of the
gradients that backward accumulates.
Edit: the zeroing goes, and the addition in each `AccumulateGrad` with it where a step accumulates each gradient once.
Gate: traces without a backward; few gradients. PyTorch 2.0 and later drop them by default, so there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, no_rows
from ..timeline.model import Timeline
from ..timeline.op_inputs import of_each, tensors
from ..timeline.select import events_of, in_typical_step, launched_by, steady, us_per_step
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .runs import ACCUMULATE_GRADIENT, Gradients, gradients, python_operators, runs_of

_ZERO = "aten::zero_"
_FOREACH_ZERO = "aten::_foreach_zero_"
_BETWEEN = ("aten::detach_", "aten::requires_grad_", "aten::fill_")

_LEAST_GRADIENTS = 8
_LEAST_SHARE = 0.3
"""Tensors zeroed together, against the gradients that a step accumulates, below which they are something else."""
_NOTICEABLE_SHARE = 0.001
_ONCE = 1.2
"""Gradients accumulated per gradient zeroed up to which each is taken to be accumulated once."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place that zeroes the gradients."""
    trace = timeline.trace
    if _ZERO not in trace.names and _FOREACH_ZERO not in trace.names:
        return
    known = gradients(timeline)
    if known is None:
        return
    least = max(_LEAST_GRADIENTS, _LEAST_SHARE * known.per_step)
    runs: list[tuple[IntArray, float]] = []
    for in_optimizer in (True, False):
        for run in runs_of(timeline, {_ZERO, *_BETWEEN}, per_run=(_ZERO,), least=least, in_optimizer=in_optimizer):
            if known.are_like(timeline, run):
                runs.append((run, float(is_among(run, trace.rows_named((_ZERO,))).sum())))
    runs += [(row, count) for row, count in _foreach_calls(timeline, known) if count >= least]
    zeroed = sum(count for _, count in runs) / max(len(timeline.steps.steady), 1)
    if not runs:
        return
    additions = _additions(timeline) if known.per_step <= _ONCE * zeroed else no_rows()
    occurrences = _occurrences(timeline, [run for run, _ in runs], additions)
    if us_per_step(timeline, np.sort(np.concatenate([one.cost_rows for one in occurrences]))) < (
        _NOTICEABLE_SHARE * timeline.step_us
    ):
        return
    for group in by_site(timeline, occurrences):
        yield _candidate(timeline, group, zeroed, known.per_step)


def _candidate(timeline: Timeline, group: tuple[Occurrence, ...], zeroed: float, accumulated: float) -> Candidate:
    rows = np.array([one.anchor for one in group])
    evidence = [
        Evidence(
            "zeroed", "gradients zeroed per step", zeroed, "", events_of(timeline, in_typical_step(timeline, rows))
        ),
        Evidence("accumulated", "gradients accumulated per step", accumulated, ""),
    ]
    if zeroed > accumulated:
        # Without a gradient the optimizer passes a parameter over; with one of zeros it still decays it.
        evidence.append(Evidence("unused", "gradients that stay zero in a step", zeroed - accumulated, ""))
    return Candidate(
        what="gradients are filled with zeros before each step",
        remedy="dropping them",
        occurrences=group,
        evidence=tuple(evidence),
        probability=0.95,
    )


def _foreach_calls(timeline: Timeline, known: Gradients) -> list[tuple[IntArray, float]]:
    """Python's multi-tensor zeroings and how many tensors each takes: all gradients, where a list shows no shapes."""
    trace = timeline.trace
    rows = steady(timeline, trace.rows_named((_FOREACH_ZERO,)))
    rows = rows[is_among(rows, python_operators(timeline))]
    counts = of_each(trace, rows, lambda inputs: len(tensors(inputs)))
    return [(rows[i : i + 1], count or known.per_step) for i, count in enumerate(counts)]


def _additions(timeline: Timeline) -> IntArray:
    """The additions to a gradient that is there already."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows_named(("aten::add_",)))
    above = tree.parent[rows]
    inside = (above != NONE) & is_among(above, trace.rows_named((ACCUMULATE_GRADIENT,)))
    return rows[inside]


def _occurrences(timeline: Timeline, runs: list[IntArray], additions: IntArray) -> list[Occurrence]:
    """One per run; the additions of a step go with its first run."""
    trace, of = timeline.trace, timeline.steps.of
    found: list[Occurrence] = []
    seen: set[int] = set()
    for run in sorted(runs, key=lambda run: run[0]):
        step = int(of[run[0]])
        own = additions[of[additions] == step] if step not in seen else no_rows()
        seen.add(step)
        rows = np.sort(np.concatenate([run, own]))
        kernels = np.concatenate(launched_by(timeline, rows))
        dearer = kernels if trace.dur_ns[kernels].sum() > trace.dur_ns[rows].sum() else rows
        found.append(Occurrence(anchor=int(run[0]), edit=Edit(removed_ops=rows), cost_rows=dearer))
    return found


PATTERN = Pattern(
    code="TAP802",
    slug="zero-grad-to-zero",
    title="Gradients are zeroed instead of dropped",
    fix=FixKind.SAFE,
    find=find,
    group="training loop and memory",
)
