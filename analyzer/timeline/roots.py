"""The calls of whole models: where advice that concerns a model, not one operator, has its place."""

from __future__ import annotations

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, Category, IntArray
from .columns import distinct, is_among, is_named
from .model import Timeline
from .select import inside, outermost, steady

MODULE_PREFIX = "nn.Module: "


def model_calls(timeline: Timeline) -> IntArray:
    """Outermost `nn.Module` events of the steady steps: one for each call of a model. Empty without Python stacks."""
    trace = timeline.trace
    frames = steady(timeline, trace.rows(Category.PYTHON_FUNCTION))
    return outermost(timeline, frames[is_named(trace, frames, lambda name: name.startswith(MODULE_PREFIX))])


def by_model_call(timeline: Timeline, rows: IntArray) -> list[tuple[int, IntArray]]:
    """`rows` (operators, or device work) of the steady steps, by the model call that they belong to.

    Answers (anchor, rows) pairs that cover all of `rows`. Backward work belongs to its forward operator's call. What
    lies in no model call goes to the step's first one; in a step without any, the anchor is the forward operator (or,
    without operators, the device row) that comes first.
    """
    calls = model_calls(timeline)
    rows = steady(timeline, rows)
    owner = inside(timeline, np.maximum(_forward_host(timeline, rows), 0), calls)
    owner[_forward_host(timeline, rows) == NONE] = NONE
    steps = timeline.steps.of[rows]
    groups: dict[int, list[IntArray]] = {}
    for index in distinct(owner[owner != NONE]).tolist():
        groups.setdefault(int(calls[index]), []).append(rows[owner == index])
    for step in distinct(steps[owner == NONE]).tolist():
        loose = rows[(owner == NONE) & (steps == step)]
        of_step = calls[timeline.steps.of[calls] == step]
        anchor = int(of_step[0]) if len(of_step) else _first_forward(timeline, loose)
        groups.setdefault(anchor, []).append(loose)
    return [(anchor, np.sort(np.concatenate(parts))) for anchor, parts in sorted(groups.items())]


def _forward_host(timeline: Timeline, rows: IntArray) -> IntArray:
    """The forward operator behind each row, else the call or operator that launched it, else the row if host."""
    trace = timeline.trace
    is_host = ~is_among(trace.cat[rows], DEVICE_CATEGORIES)
    launching = np.where(is_host, rows, timeline.launches.runtime[rows])
    forward = timeline.forward_op[rows]
    return np.where(forward != NONE, forward, launching).astype(np.int64)


def _first_forward(timeline: Timeline, rows: IntArray) -> int:
    hosts = timeline.launches.op[rows]
    forward = timeline.forward_op[rows]
    hosts = np.where(forward != NONE, forward, hosts)
    hosts = hosts[hosts != NONE]
    return int(hosts.min()) if len(hosts) else int(rows[0])
