"""The analysis' tables, with each row's place in the source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from ..analyzer.detector.model import WindowScores
from ..analyzer.detector.parts import Part, odd_parts, usual_parts
from ..analyzer.findings import (
    AttentionRow,
    CounterRow,
    FeatureMapRow,
    HeadRow,
    KindRow,
    LayoutChangeRow,
    Location,
    SampleRow,
    Tables,
    WindowRow,
)
from ..analyzer.timeline.attention import AttentionLayer, attention_table
from ..analyzer.timeline.counters import KernelCounters, kernel_counters
from ..analyzer.timeline.feature_maps import FeatureMap, feature_maps
from ..analyzer.timeline.layout_changes import LayoutChange, layout_changes
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import NONE, Dims
from ..analyzer.trace.recording import DEVICE
from .locate import Locator


def tables(
    timeline: Timeline,
    locator: Locator | None = None,
    *,
    with_feature_maps: bool = False,
    scores: WindowScores | None = None,
) -> Tables:
    """All tables of a timeline; places stay unknown without a locator, windows are left out without `scores`."""
    maps = feature_maps(timeline) if with_feature_maps else ()
    recording = timeline.trace.recording
    return Tables(
        attention=tuple(_attention(layer, locator) for layer in attention_table(timeline)),
        layout_changes=tuple(_layout_change(change, locator) for change in layout_changes(timeline)),
        feature_maps=tuple(_feature_map(one, locator) for one in maps),
        counters=tuple(_counters(one) for one in kernel_counters(timeline)),
        device_samples=tuple(_samples(recording.counters.get(DEVICE, {}))) if recording is not None else (),
        windows=_windows(timeline, usual_parts(timeline, scores), locator) if scores is not None else (),
        single_windows=_windows(timeline, odd_parts(timeline, scores), locator) if scores is not None else (),
    )


def _windows(timeline: Timeline, parts: Iterable[Part], locator: Locator | None) -> tuple[WindowRow, ...]:
    return tuple(
        WindowRow(
            name=part.name,
            step=int(timeline.steps.number[part.step]),
            steps=part.steps,
            start_us=part.start_ns / 1000.0,
            end_us=part.end_ns / 1000.0,
            share_pct=round(100.0 * part.share, 2),
            bad=round(part.bad, 4),
            kinds=tuple(KindRow(slug, round(probability, 4)) for slug, probability in part.kinds),
            is_unknown=part.is_unknown,
            is_single=part.is_single,
            location=_place(locator, part.anchor),
        )
        for part in parts
    )


def _layout_change(change: LayoutChange, locator: Locator | None) -> LayoutChangeRow:
    return LayoutChangeRow(
        change=change.change,
        cause=change.cause,
        by_library=change.by_library,
        module=change.module,
        location=_place(locator, change.anchor),
        shape=_sizes(change.shape),
        bytes_per_step=change.bytes_moved or None,
        count_per_step=change.count_per_step,
        us_per_step=round(change.us_per_step, 3),
    )


def _feature_map(one: FeatureMap, locator: Locator | None) -> FeatureMapRow:
    return FeatureMapRow(
        name=one.module or one.op,
        inside=one.inside,
        op=one.op,
        location=_place(locator, one.row),
        input_shape=_sizes(one.input_shape),
        output_shape=_sizes(one.output_shape),
        dtype=one.dtype,
        output_bytes=one.output_bytes or None,
        layout=one.layout,
    )


def _sizes(shape: Dims) -> tuple[int, ...]:
    return tuple(size for size in shape if isinstance(size, int))


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


def _samples(figures: Mapping[str, float]) -> Iterator[SampleRow]:
    """`x_mean` and `x_max` make the row of x."""
    for name, mean in figures.items():
        subject = name.removesuffix("_mean")
        largest = figures.get(f"{subject}_max")
        if subject != name and largest is not None:
            yield SampleRow(subject, mean, largest)


def _counters(one: KernelCounters) -> CounterRow:
    return CounterRow(
        kernel=one.kernel,
        launches=one.launches,
        us_per_step=_known(one.us_per_step),
        dram_bytes=_known(one.dram_bytes),
        dram_gb_per_s=_known(one.dram_gb_per_s),
        l2_hit_pct=_known(one.l2_hit_pct),
        tensor_pct=_known(one.tensor_pct),
        tensor_instructions=_known(one.tensor_instructions),
        flops=_known(one.flops),
    )


def _place(locator: Locator | None, anchor: int) -> Location | None:
    place = locator.locate(anchor) if locator is not None and anchor != NONE else None
    return place.location if place is not None else None


def _known(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
