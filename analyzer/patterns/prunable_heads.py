"""prunable-heads: heads that do next to nothing for the result take as much time as the others.

Why it is slow: all heads of a layer are of one size, whatever they are worth; of many trained models a good part of the
heads can go without the result changing.
Trace: a layer's per-head importance, recorded by the program, with heads under a quarter of an even share (a tenth
where it was measured without gradients, which is less sure), and the time of its attention and its projections.
Edit: the attention and the projections of its module take the share of the heads that are kept.
Gate: recordings without the statistics; layers that would lose all their heads keep the best one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct
from ..timeline.model import Timeline
from ..timeline.sites import group_by_site
from .base import Candidate, FixKind, Occurrence, Pattern
from .measured_attention import MeasuredLayer, measured_layers, projections_of, shrunk

WEAK_SHARE = 0.25
"""A head is weak whose importance is under this share of an even one."""
WEAK_SHARE_BY_NORM = 0.1
"""The same where only the length of what heads add is known: that ranks heads less surely (bench/attention)."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that has layers with weak heads."""
    layers = [layer for layer in measured_layers(timeline) if weak_heads(layer)]
    if not layers:
        return
    layer_of = {call.anchor: layer for layer in layers for call in layer.calls}
    occurrence_of = {one.anchor: one for layer in layers for one in _occurrences(timeline, layer)}
    for anchors in group_by_site(timeline, np.array(sorted(layer_of))):
        here = list(dict.fromkeys(layer_of[row] for row in anchors.tolist()))
        yield Candidate(
            what="attention heads that matter little are computed in full",
            remedy="pruning them",
            occurrences=tuple(occurrence_of[row] for row in anchors.tolist()),
            evidence=tuple(_row(layer) for layer in here),
            probability=0.7,
        )


def weak_heads(layer: MeasuredLayer) -> list[int]:
    """The heads of a layer that can go, weakest first; never all of them."""
    importance = layer.statistics.importance
    if not importance:
        return []
    ordered = sorted(range(len(importance)), key=lambda head: importance[head])
    share = WEAK_SHARE_BY_NORM if layer.statistics.measure == "norm" else WEAK_SHARE
    weak = [head for head in ordered if importance[head] < share / len(importance)]
    return weak[: len(importance) - 1]


def _occurrences(timeline: Timeline, layer: MeasuredLayer) -> Iterator[Occurrence]:
    kept = 1.0 - len(weak_heads(layer)) / len(layer.statistics.importance)
    for call, projections in zip(layer.calls, projections_of(timeline, layer.calls), strict=True):
        yield shrunk(timeline, call.anchor, [(distinct(np.concatenate([call.ops, projections])), round(kept, 4))])


def _row(layer: MeasuredLayer) -> Evidence:
    """One line of the table: the layer, its weak heads, and what they are worth together."""
    weak = weak_heads(layer)
    importance = layer.statistics.importance
    worth = 100 * sum(importance[head] for head in weak) / sum(importance)
    heads = ", ".join(map(str, sorted(weak)))
    value = f"{heads} of {len(importance)}: {worth:.1f} % of the importance"
    return Evidence(f"heads-{layer.statistics.layer}", f"heads to prune in {layer.statistics.layer}", value, "")


PATTERN = Pattern(
    code="TAP610",
    slug="prunable-heads",
    title="Attention heads that matter little",
    fix=FixKind.ADVICE,
    find=find,
    group="attention_bottleneck",
    stage=Stage.ARCHITECTURE,
)
