"""Attention layers whose statistics were recorded, and edits that shrink them: what rules about such layers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..timeline.attention import calls_by_layer, statistics_by_anchor
from ..timeline.attention_calls import AttentionCall, attention_calls, enclosing_module
from ..timeline.attention_stats import PREFIX, AttentionStatistics
from ..timeline.columns import distinct
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.memo import once
from ..timeline.model import Phase, Timeline
from ..timeline.select import backward_of, backward_ops, inside, launched_by, outermost, steady
from ..trace.model import NONE, Category, IntArray
from .base import Occurrence

_PROJECTIONS = ("aten::linear", "aten::addmm", "aten::mm")


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLayer:
    """A layer's calls in the steady steps, with what was measured in it (the last time, where more than once)."""

    calls: tuple[AttentionCall, ...]
    statistics: AttentionStatistics


@once
def measured_layers(timeline: Timeline) -> list[MeasuredLayer]:
    """The layers that statistics were recorded of, in the order of their first execution."""
    if not any(name.startswith(PREFIX) for name in timeline.trace.names):
        return []
    calls = attention_calls(timeline)
    statistics = dict(statistics_by_anchor(timeline, calls))
    found: list[MeasuredLayer] = []
    for layer in calls_by_layer(timeline, calls):
        told = [statistics[call.anchor] for call in layer if call.anchor in statistics]
        if told:
            found.append(MeasuredLayer(tuple(layer), told[-1]))
    return found


def projections_of(timeline: Timeline, calls: Iterable[AttentionCall]) -> list[IntArray]:
    """For each call the layers that project in the module that holds it; none where no modules were recorded."""
    modules = np.array([enclosing_module(timeline, call.anchor) for call in calls], dtype=np.int64)
    if not len(modules) or (modules == NONE).any():
        return [no_rows() for _ in modules]
    trace = timeline.trace
    rows = trace.rows_named(_PROJECTIONS)
    rows = rows[(trace.cat[rows] == Category.CPU_OP) & (timeline.phase[rows] != Phase.BACKWARD)]
    rows = outermost(timeline, steady(timeline, rows))
    holders = distinct(modules)
    holder = inside(timeline, rows, holders)
    return [rows[holder == k] for k in np.searchsorted(holders, modules).tolist()]


def shrunk(timeline: Timeline, anchor: int, parts: Iterable[tuple[IntArray, float]]) -> Occurrence:
    """An occurrence whose host rows, part by part, would take a share of their time, forward and backward."""
    backward = backward_ops(timeline)
    scales: list[Scale] = []
    for rows, share in parts:
        ordered = np.sort(rows)
        work = np.sort(np.concatenate([ordered, *backward_of(timeline, ordered, backward)]))
        if not timeline.is_cpu_only:
            work = np.concatenate([no_rows(), *launched_by(timeline, work)])
        scales.append(Scale(work, share))
    cost = distinct(np.concatenate([no_rows(), *(scale.rows for scale in scales)]))
    return Occurrence(anchor, Edit(scales=tuple(scales)), cost)
