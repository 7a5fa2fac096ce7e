"""volumetric-layout: three-dimensional convolutions run on NCDHW tensors where NDHWC is faster.

Why it is slow: cuDNN's tensor-core kernels for volumes and videos work in NDHWC and transpose NCDHW tensors round each
call. On the CPU max pooling and trilinear upsampling are ten times faster in NDHWC, and most convolutions somewhat.
Trace: on a device, transposes by the library within `conv3d`; on the CPU, strides that say NCDHW at the convolutions.
Edit: on a device the transposes go, but for those that 3-D pooling (which has no NDHWC kernel and gives NCDHW back)
makes necessary: two for each pooling. On the CPU each operator is scaled by what was measured (torch 2.13, oneDNN, one
thread, fp32), time in NDHWC over NCDHW, forward and backward: convolutions along two axes or three 0.39 to 0.80 and
0.32 to 1.74, along time alone 1.05 and 1.23, of few input channels 1.1, pointwise 2.5 and 1.3, depthwise 0.49 and 0.66,
transposed 0.39 and 1, those that PyTorch runs without oneDNN (one small volume) 1.02 and 1.15; max pooling 0.10 and
0.79, trilinear upsampling 0.10 and 0.23, nearest 0.31 and 1.38, batch norm in training 0.47 and 1.2, in inference 1.6,
average pooling 1.85, group norm 1.43 and 2.0, instance norm 2.0 and 2.5.
Gate: instance and group norm on a device, which turn every tensor back (a 3-D U-Net with instance norm was measured
24 % slower in NDHWC); nets in channels_last_3d already; strides not recorded on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct
from ..timeline.convolution_calls import ConvCalls, ConvShape, backward_rows
from ..timeline.edit import Edit, Scale, no_rows, scales_within
from ..timeline.model import Timeline
from ..timeline.op_inputs import of_each
from ..timeline.roots import by_model_call
from ..timeline.select import (
    backward_of,
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    ops_named,
    us_per_step,
)
from ..trace.model import IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .volumes import library_transposes, transposes_evidence, volume_convolutions

_VOLUME_RANK = 5
_WIDE, _ALONG_TIME, _THIN = (0.7, 0.85), (1.05, 1.23), (1.08, 1.12)
_POINTWISE, _DEPTHWISE, _TRANSPOSED, _WITHOUT_ONEDNN = (2.5, 1.3), (0.49, 0.66), (0.39, 1.0), (1.02, 1.15)
"""Factors of convolutions, forward and backward."""
_FEW_CHANNELS = 4
_KEPT_FROM_ONEDNN = 20480
"""PyTorch runs a single volume itself while the product of its sizes, the last left out, is no more than this."""
_OTHERS = {
    "aten::max_pool3d": (0.1, 0.79),
    "aten::upsample_trilinear3d": (0.1, 0.23),
    "aten::upsample_nearest3d": (0.31, 1.38),
    "aten::avg_pool3d": (1.85, 1.0),
    "aten::group_norm": (1.43, 2.0),
    "aten::instance_norm": (2.0, 2.5),
}
_NORM, _TRAINING_NORM, _INFERENCE_NORM = "aten::batch_norm", (0.47, 1.2), (1.6, 1.0)
_TRAINING_AT = 5
_TURN_BACK = ("aten::instance_norm", "aten::group_norm")
_POOLS = ("aten::max_pool3d", "aten::avg_pool3d", "aten::adaptive_avg_pool3d")
_PER_POOL = 2


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model that would gain."""
    calls = volume_convolutions(timeline)
    if len(calls):
        yield from _on_cpu(timeline, calls) if timeline.is_cpu_only else _on_device(timeline, calls)


def _on_device(timeline: Timeline, calls: ConvCalls) -> Iterator[Candidate]:
    layout = library_transposes(timeline, calls)
    if not is_noticeable(timeline, layout) or len(_volumes(timeline, _TURN_BACK)):
        return
    pools = count_per_step(timeline, _volumes(timeline, _POOLS))
    kept = min(_PER_POOL * pools / max(count_per_step(timeline, layout), 1.0), 1.0)
    occurrences = [
        Occurrence(anchor, Edit(scales=(Scale(rows, round(kept, 2)),)), rows)
        for anchor, rows in by_model_call(timeline, layout)
    ]
    pooling = Evidence("pools", "3-D poolings per step, which turn the layout back", pools, "")
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="3-D convolutions run on NCDHW tensors and are transposed around each call",
            remedy="channels_last_3d",
            occurrences=group,
            evidence=(transposes_evidence(timeline, layout), pooling),
            probability=0.8,
        )


def _on_cpu(timeline: Timeline, calls: ConvCalls) -> Iterator[Candidate]:
    calls = calls.chosen([shape.axes == _VOLUME_RANK - 2 for shape in calls.shapes])
    in_ncdhw = calls.chosen([shape.channels_last is False for shape in calls.shapes])
    in_ndhwc = calls.chosen([shape.channels_last is True for shape in calls.shapes])
    if len(in_ncdhw) <= len(in_ndhwc):
        return
    scales = _scales(timeline, in_ncdhw)
    rows = distinct(np.concatenate([no_rows(), *(scale.rows for scale in scales)]))
    occurrences = [
        Occurrence(anchor, Edit(scales=scales_within(scales, mine)), mine)
        for anchor, mine in by_model_call(timeline, rows)
    ]
    for group in by_site(timeline, occurrences):
        gains = np.concatenate([no_rows(), *(scale.rows for scale in scales if scale.factor < 1.0)])
        yield Candidate(
            what="3-D convolutions, pooling and upsampling run on NCDHW tensors",
            remedy="channels_last_3d",
            occurrences=group,
            evidence=(
                Evidence(
                    "operators",
                    "operators per step that are faster in NDHWC",
                    count_per_step(timeline, gains),
                    "",
                    events_of(timeline, in_typical_step(timeline, np.sort(gains))),
                ),
                Evidence("time", "their time per step", round(us_per_step(timeline, gains) / 1000, 3), "ms"),
            ),
            probability=0.7,
        )


def _scales(timeline: Timeline, calls: ConvCalls) -> tuple[Scale, ...]:
    """Every operator on volumes, forward and backward, with its factor."""
    by_factor: dict[float, list[IntArray]] = {}
    backward = backward_ops(timeline)
    for row, shape, after in zip(calls.rows, calls.shapes, backward_rows(timeline, calls), strict=True):
        forward, behind = _conv_factors(shape)
        by_factor.setdefault(forward, []).append(np.array([row]))
        by_factor.setdefault(behind, []).append(after)
    for names, (forward, behind) in _other_factors(timeline):
        by_factor.setdefault(forward, []).append(names)
        by_factor.setdefault(behind, []).extend(backward_of(timeline, names, backward))
    joined = {
        factor: np.sort(np.concatenate([no_rows(), *parts])) for factor, parts in by_factor.items() if factor != 1.0
    }
    return tuple(Scale(rows, factor) for factor, rows in joined.items() if len(rows))


def _conv_factors(shape: ConvShape) -> tuple[float, float]:
    if shape.data[0] == 1 and prod(shape.data[:4]) <= _KEPT_FROM_ONEDNN and shape.groups == 1:
        return _WITHOUT_ONEDNN
    if shape.is_transposed:
        return _TRANSPOSED
    if shape.groups > 1:
        return _DEPTHWISE
    if max(shape.kernel) == 1:
        return _POINTWISE
    if max(shape.kernel[1:]) == 1:
        return _ALONG_TIME
    return _THIN if shape.data[1] < _FEW_CHANNELS else _WIDE


def _other_factors(timeline: Timeline) -> Iterator[tuple[IntArray, tuple[float, float]]]:
    for name, factors in _OTHERS.items():
        yield _volumes(timeline, (name,)), factors
    norms = _volumes(timeline, (_NORM,))
    trains = np.array([flag != "False" for flag in of_each(timeline.trace, norms, _training)], dtype=np.bool_)
    yield norms[trains], _TRAINING_NORM
    yield norms[~trains], _INFERENCE_NORM


def _training(inputs: OpInputs) -> str:
    return inputs.value(_TRAINING_AT)


def _volumes(timeline: Timeline, names: tuple[str, ...]) -> IntArray:
    """Operators of these names on tensors of five dimensions."""
    rows = ops_named(timeline, names)
    ranks = of_each(timeline.trace, rows, lambda inputs: len(inputs.shape(0)))
    return rows[np.array(ranks, dtype=np.int64) == _VOLUME_RANK]


PATTERN = Pattern(
    code="TAP504",
    slug="volumetric-layout",
    title="3-D convolutions in NCDHW",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
    stage=Stage.HARDWARE,
)
