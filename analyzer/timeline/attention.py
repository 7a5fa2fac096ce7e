"""The attention table: what each attention layer computes, on what, how fast, and what it spends beside computing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from ..trace.model import NONE, FloatArray, IntArray
from .attention_backends import Backend, backend_of_kernel
from .attention_calls import AttentionCall, attention_calls, part_times_us
from .attention_parts import Part
from .attention_stats import AttentionStatistics, statistics_of
from .columns import is_among, median
from .edit import no_rows
from .model import KernelClass, Timeline
from .module_names import innermost_modules
from .select import backward_of, backward_ops, launched_by, us_per_step
from .sites import SiteFinder

NAN = float("nan")
_HALF_TYPES = ("c10::Half", "c10::BFloat16")


@dataclass(frozen=True, slots=True)
class HeadShare:
    """One head of a layer whose statistics were recorded."""

    head: int
    importance: float
    """Its share of what the layer does; all heads' sum to 1."""
    work_share: float
    """Its share of the layer's time: heads are all of one size."""


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """One row of the table: an attention layer in a steady step. Times are medians over the steady steps."""

    name: str
    """The module (`Attention_3`), else its place in the step (`attention 3`), or its kernel in a compiled program."""
    anchor: int
    """A host row of it, to find its source by; NONE where only its kernels are known."""
    backend: Backend
    calls_per_step: float
    us_per_step: float
    """Everything between the projections, the backward pass included."""
    share_pct: float
    """The same in per cent of the step."""
    backward_us_per_step: float
    batch: int
    """Sequences that attend at a time (images, windows); 0 if unknown, as are the next four."""
    heads: int
    head_dim: int
    query_tokens: int
    key_tokens: int
    flops_per_step: float
    """Of the two products in the forward pass; NaN if sizes are unknown."""
    achieved_tflops: float
    """Rate of the forward computation; NaN if unknown."""
    peak_tflops: float
    """Of the device, for the precision of the inputs; NaN if unknown."""
    compute_us_per_step: float
    """Forward time by part, here and below."""
    copies_us_per_step: float
    masks_us_per_step: float
    cache_us_per_step: float
    communication_us_per_step: float
    other_us_per_step: float
    head_shares: tuple[HeadShare, ...] = ()
    """Where statistics were recorded, else empty."""

    @property
    def forward_us_per_step(self) -> float:
        """Forward time of all parts."""
        return self.us_per_step - self.backward_us_per_step

    @property
    def compute_ratio(self) -> float:
        """Forward computation over all of the forward time, 0 to 1; NaN if nothing took time."""
        return self.compute_us_per_step / self.forward_us_per_step if self.forward_us_per_step > 0 else NAN

    @property
    def achieved_pct(self) -> float:
        """Achieved rate in per cent of the peak; NaN if either is unknown."""
        return 100.0 * self.achieved_tflops / self.peak_tflops


def attention_table(timeline: Timeline) -> tuple[AttentionLayer, ...]:
    """All attention layers, in the order of their first execution; worked out anew on every call."""
    calls = attention_calls(timeline)
    times = part_times_us(timeline, calls)
    backward_us = _backward_us(timeline, calls)
    statistics = _statistics_by_call(timeline, calls)
    layers = [
        _layer(timeline, name, [calls[k] for k in members], times[members], backward_us[members], statistics)
        for name, members in _layers(timeline, calls)
    ]
    return (*layers, *_kernels_alone(timeline, calls))


def calls_by_layer(timeline: Timeline, calls: list[AttentionCall]) -> list[list[AttentionCall]]:
    """The calls of each layer, layers in the order of their first execution."""
    return [[calls[k] for k in members] for _, members in _layers(timeline, calls)]


def statistics_by_anchor(timeline: Timeline, calls: list[AttentionCall]) -> list[tuple[int, AttentionStatistics]]:
    """Anchors of the calls that statistics were recorded of, with the statistics: those of the call just before."""
    anchors = np.array([call.anchor for call in calls], dtype=np.int64)
    trace = timeline.trace
    found: list[tuple[int, AttentionStatistics]] = []
    for row, statistics in statistics_of(trace) if len(anchors) else ():
        own = anchors[trace.thread[anchors] == trace.thread[row]]
        at = int(np.searchsorted(trace.ts_ns[own], trace.ts_ns[row], side="right")) - 1
        if at >= 0:
            found.append((int(own[at]), statistics))
    return found


def _statistics_by_call(timeline: Timeline, calls: list[AttentionCall]) -> dict[int, AttentionStatistics]:
    return dict(statistics_by_anchor(timeline, calls))


def _layers(timeline: Timeline, calls: list[AttentionCall]) -> list[tuple[str, list[int]]]:
    """Calls by layer: by the module that holds them, else by site and by how many came before in the step."""
    finder = SiteFinder(timeline)
    groups: dict[tuple[object, ...], list[int]] = {}
    counts: dict[tuple[object, ...], int] = {}
    for k, call in enumerate(calls):
        site = finder.site(call.anchor)
        name, _ = innermost_modules(timeline, call.anchor)
        if not name:
            step = int(timeline.steps.of[call.anchor])
            number = counts[(site, step)] = counts.get((site, step), 0) + 1
            name = f"attention {number}"
        groups.setdefault((site, name), []).append(k)
    return [(str(key[1]), members) for key, members in groups.items()]


def _layer(
    timeline: Timeline,
    name: str,
    calls: list[AttentionCall],
    times: FloatArray,
    backward_us: FloatArray,
    statistics: dict[int, AttentionStatistics],
) -> AttentionLayer:
    anchors = np.array([call.anchor for call in calls])
    steps = timeline.steps.of[anchors]
    per_step = [_median_per_step(timeline, steps, times[:, part]) for part in Part]
    backward = _median_per_step(timeline, steps, backward_us)
    flops = np.array([call.flops for call in calls])
    total = sum(per_step) + backward
    compute = per_step[Part.COMPUTE]
    flops_per_step = _median_per_step(timeline, steps, flops)
    call = calls[0]
    sizes = _sizes(call)
    shares = next((_head_shares(one) for c in calls if (one := statistics.get(c.anchor)) is not None), ())
    return AttentionLayer(
        name=name,
        anchor=call.anchor,
        backend=call.backend,
        calls_per_step=_median_per_step(timeline, steps, np.ones(len(calls))),
        us_per_step=total,
        share_pct=100.0 * total / timeline.step_us if timeline.step_us > 0 else NAN,
        backward_us_per_step=backward,
        batch=sizes[0],
        heads=sizes[1],
        query_tokens=sizes[2],
        key_tokens=sizes[3],
        head_dim=sizes[4],
        flops_per_step=flops_per_step,
        achieved_tflops=flops_per_step / compute / 1e6 if compute > 0 else NAN,
        peak_tflops=_peak(timeline, call),
        compute_us_per_step=compute,
        copies_us_per_step=per_step[Part.COPIES],
        masks_us_per_step=per_step[Part.MASKS],
        cache_us_per_step=per_step[Part.CACHE],
        communication_us_per_step=per_step[Part.COMMUNICATION],
        other_us_per_step=per_step[Part.OTHER],
        head_shares=shares,
    )


def _sizes(call: AttentionCall) -> tuple[int, int, int, int, int]:
    """Batch, heads, query tokens, key tokens, width; 0 where unknown. Folded heads count as batch."""
    query, key = call.query, call.key
    if len(query) < 2 or len(key) < 2:
        return 0, 0, 0, 0, 0
    heads = query[-3] if len(query) > 3 else 0
    batch = prod(query[:-3]) if len(query) > 3 else prod(query[:-2])
    return batch, heads, query[-2], key[-2], query[-1]


def _peak(timeline: Timeline, call: AttentionCall) -> float:
    is_half = timeline.trace.inputs_of(call.anchor).dtype(0) in _HALF_TYPES
    return timeline.device.half_tflops if is_half else timeline.device.fp32_tflops


def _head_shares(statistics: AttentionStatistics) -> tuple[HeadShare, ...]:
    count = len(statistics.importance)
    return tuple(HeadShare(head, share, 1.0 / count) for head, share in enumerate(statistics.importance))


def _backward_us(timeline: Timeline, calls: list[AttentionCall]) -> FloatArray:
    """Backward time that each call's neighbourhood caused."""
    found = np.zeros(len(calls))
    backward = backward_ops(timeline) if calls else no_rows()
    if not len(backward):
        return found
    ops = np.concatenate([call.ops for call in calls])
    owner = np.repeat(np.arange(len(calls)), [len(call.ops) for call in calls])
    caused = backward_of(timeline, ops, backward)
    flat = np.concatenate(caused)
    flat_owner = np.repeat(owner, [len(rows) for rows in caused])
    if not timeline.is_cpu_only:
        launched = launched_by(timeline, flat)
        flat_owner = np.repeat(flat_owner, [len(rows) for rows in launched])
        flat = np.concatenate(launched) if launched else no_rows()
    np.add.at(found, flat_owner, timeline.trace.dur_ns[flat] / 1000.0)
    return found


def _median_per_step(timeline: Timeline, steps: Iterable[int] | IntArray, values: FloatArray) -> float:
    steady = timeline.steps.steady
    sums = np.bincount(np.asarray(steps), weights=values, minlength=len(timeline.steps))
    return median(sums[steady]) if len(steady) else 0.0


def _kernels_alone(timeline: Timeline, calls: list[AttentionCall]) -> list[AttentionLayer]:
    """Attention kernels that no operator found launched (a compiled program, a graph): one row for each kernel."""
    rows = timeline.device_rows
    rows = rows[timeline.kernel_class[rows] == KernelClass.ATTENTION]
    if calls and len(rows):
        ops = np.concatenate([call.ops for call in calls])
        owned = [*launched_by(timeline, ops)]
        forward_op = timeline.launches.op[rows]
        is_backward = (forward_op != NONE) & (timeline.forward_op[np.maximum(forward_op, 0)] != NONE)
        rows = rows[~is_among(rows, np.concatenate(owned)) & ~is_backward]
    names = timeline.trace.name[rows]
    return [_kernel_row(timeline, rows[names == name]) for name in sorted(set(names.tolist()))]


def _kernel_row(timeline: Timeline, rows: IntArray) -> AttentionLayer:
    us = us_per_step(timeline, rows)
    name = timeline.trace.name_of(int(rows[0]))
    return AttentionLayer(
        name=_short(name),
        anchor=NONE,
        backend=backend_of_kernel(name),
        calls_per_step=_median_per_step(timeline, timeline.steps.of[rows], np.ones(len(rows))),
        us_per_step=us,
        share_pct=100.0 * us / timeline.step_us if timeline.step_us > 0 else NAN,
        backward_us_per_step=0.0,
        batch=0,
        heads=0,
        head_dim=0,
        query_tokens=0,
        key_tokens=0,
        flops_per_step=NAN,
        achieved_tflops=NAN,
        peak_tflops=timeline.device.half_tflops,
        compute_us_per_step=us,
        copies_us_per_step=0.0,
        masks_us_per_step=0.0,
        cache_us_per_step=0.0,
        communication_us_per_step=0.0,
        other_us_per_step=0.0,
    )


def _short(kernel: str) -> str:
    """A kernel's name without its template arguments and return type."""
    return re.sub(r"^void ", "", kernel).partition("<")[0]
