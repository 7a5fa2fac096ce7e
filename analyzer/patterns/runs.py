"""Runs: what Python did over and over with nothing else between, as a loop over a model's parameters does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..timeline.columns import is_among
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import count_per_step, steady
from ..trace.model import NONE, Category, Dims, IntArray, OpInputs

ACCUMULATE_GRADIENT = "torch::autograd::AccumulateGrad"
"""The autograd node that adds to one parameter's gradient: there are as many per backward pass as parameters train."""
_LEAST_KNOWN_SHAPES = 0.7
"""Share of tensors that must have the shape of a gradient to be taken for parameters or gradients."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """What the backward passes of a steady step accumulate."""

    per_step: float
    shapes: frozenset[Dims]

    def are_like(self, timeline: Timeline, rows: IntArray) -> bool:
        """Whether the operators `rows` work on tensors of gradients' shapes, as far as shapes were recorded.

        A scalar tells nothing: every step reduces something to one.
        """
        known = [shape for shape in of_each(timeline.trace, rows, _first_shape) if shape]
        if not known or self.shapes <= {()}:
            return bool(len(rows)) and bool(np.all(timeline.trace.inputs[rows] < 0))
        return sum(shape in self.shapes for shape in known) >= _LEAST_KNOWN_SHAPES * len(known)


def gradients(timeline: Timeline) -> Gradients | None:
    """The gradients of a training step; None for a trace without a backward pass."""
    rows = steady(timeline, timeline.trace.rows_named((ACCUMULATE_GRADIENT,)))
    if not len(rows):
        return None
    return Gradients(count_per_step(timeline, rows), frozenset(of_each(timeline.trace, rows, _first_shape)))


def _first_shape(inputs: OpInputs) -> Dims:
    return inputs.shape(0)


def python_operators(timeline: Timeline) -> IntArray:
    """Operators of the steady steps that stand in no other operator: what Python (or the autograd engine) called."""
    trace, tree = timeline.trace, timeline.tree
    rows = trace.rows(Category.CPU_OP)
    above = tree.parent[rows]
    is_outer = (above == NONE) | (tree.op[np.maximum(above, 0)] == NONE)
    return rows[is_outer & timeline.steps.are_steady(rows)]


def runs_of(
    timeline: Timeline, names: Collection[str], *, per_run: Collection[str], least: float, in_optimizer: bool = False
) -> list[IntArray]:
    """Unbroken runs of Python's operators called one of `names`, each within one step and one thread, in order.

    A run counts if it has at least `least` operators called one of `per_run`. Operators of optimizers belong to no
    run, unless they are all that is asked for.
    """
    trace = timeline.trace
    counted = trace.rows_named(tuple(per_run))
    if len(counted) < least:
        return []
    rows = python_operators(timeline)
    rows = rows[np.argsort(trace.thread[rows], kind="stable")]
    wanted = frozenset(names)
    is_wanted = np.array([name in wanted for name in trace.names], dtype=np.bool_)[trace.name[rows]]
    is_wanted &= (timeline.phase[rows] == Phase.OPTIMIZER) == in_optimizer
    goes_on = np.zeros(len(rows), dtype=np.bool_)
    of, thread = timeline.steps.of[rows], trace.thread[rows]
    goes_on[1:] = is_wanted[:-1] & (of[1:] == of[:-1]) & (thread[1:] == thread[:-1])
    rows, number = rows[is_wanted], np.cumsum(is_wanted & ~goes_on)[is_wanted] - 1
    if not len(rows):
        return []
    counts = np.bincount(number, weights=is_among(rows, counted))
    bounds = np.searchsorted(number, np.arange(len(counts) + 1))
    found = [rows[bounds[run] : bounds[run + 1]] for run in np.flatnonzero(counts >= least).tolist()]
    return sorted(found, key=lambda run: run[0])


def spanned(timeline: Timeline, run: IntArray) -> IntArray:
    """Host events, none inside another, that make up the time from a run's first operator to its last.

    These are the calls that the function round the run made meanwhile, Python's part of them included; without
    frames they are the operators themselves.
    """
    trace, tree = timeline.trace, timeline.tree
    first, last = int(run[0]), int(run[-1])
    above_last = {last, *tree.ancestors(last)}
    top = first
    while (holder := int(tree.parent[top])) != NONE and holder not in above_last:
        top = holder
    if holder == NONE:
        return run
    children = tree.children(holder).astype(np.int64)
    return children[(children >= top) & (trace.ts_ns[children] <= trace.ts_ns[last])]
