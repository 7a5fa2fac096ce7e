"""The analysis' tables, with each row's place in the source."""

from __future__ import annotations

import math

from ..analyzer.findings import AttentionRow, HeadRow, Location, Tables
from ..analyzer.timeline.attention import AttentionLayer, attention_table
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import NONE
from .locate import Locator


def tables(timeline: Timeline, locator: Locator | None = None) -> Tables:
    """All tables of a timeline; places stay unknown without a locator."""
    return Tables(attention=tuple(_attention(layer, locator) for layer in attention_table(timeline)))


def _attention(layer: AttentionLayer, locator: Locator | None) -> AttentionRow:
    return AttentionRow(
        name=layer.name,
        location=_place(locator, layer.anchor),
        backend=layer.backend.value,
        share_pct=round(layer.share_pct, 2),
        us_per_step=round(layer.us_per_step, 3),
        backward_us_per_step=round(layer.backward_us_per_step, 3),
        calls_per_step=layer.calls_per_step,
        batch=layer.batch or None,
        heads=layer.heads or None,
        head_dim=layer.head_dim or None,
        query_tokens=layer.query_tokens or None,
        key_tokens=layer.key_tokens or None,
        flops_per_step=_known(layer.flops_per_step),
        achieved_tflops=_known(layer.achieved_tflops),
        peak_tflops=_known(layer.peak_tflops),
        compute_ratio=_known(layer.compute_ratio),
        copies_us_per_step=round(layer.copies_us_per_step, 3),
        masks_us_per_step=round(layer.masks_us_per_step, 3),
        cache_us_per_step=round(layer.cache_us_per_step, 3),
        communication_us_per_step=round(layer.communication_us_per_step, 3),
        heads_measured=tuple(HeadRow(one.head, one.importance, one.work_share) for one in layer.head_shares),
    )


def _place(locator: Locator | None, anchor: int) -> Location | None:
    place = locator.locate(anchor) if locator is not None and anchor != NONE else None
    return place.location if place is not None else None


def _known(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
