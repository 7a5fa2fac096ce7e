"""channels-last-missing: a convolutional net runs in NCHW on hardware whose convolution kernels want NHWC.

Why it is slow: tensor-core convolutions work in NHWC. Around NCHW tensors the library transposes every input and
output; on the CPU, oneDNN's, the pooling's and the upsampling's NHWC kernels are faster.
Trace: on a device, the library's own `nchwToNhwc` / `nhwcToNchw` / `batched_transpose` kernels; on the CPU, recorded
strides that say NCHW at the convolutions.
Edit: on a device the transposes go (the kernels between them stay as recorded); on the CPU each operator is scaled by
the factors of `timeline.layout`.
Gate: on the CPU, nets whose strides were not recorded, or are channels_last already; nets that would get slower
(grouped convolutions, group norm). On a device, where grouped convolutions own a good part of the convolution time: old
cuDNN versions run them far slower in channels_last, so the finding is only a hint.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, is_named
from ..timeline.edit import Edit, Scale, scales_within
from ..timeline.layout import (
    TRANSPOSED_CONVOLUTION,
    convolutions,
    is_channels_last,
    is_grouped,
    nchw_convolutions,
    nchw_scales,
)
from ..timeline.model import KernelClass, Timeline
from ..timeline.op_inputs import of_each
from ..timeline.roots import by_model_call
from ..timeline.select import count_per_step, device_rows, events_of, in_typical_step, launched_by, us_per_step
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .volumes import library_transposes, transposes_evidence, volume_convolutions

_GROUPED_SHARE = 0.25
"""Share of grouped convolutions in convolution time from which advice on a device needs the library's version."""
_UNSURE = 0.45


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model that would gain."""
    yield from _on_cpu(timeline) if timeline.is_cpu_only else _on_device(timeline)


def _on_device(timeline: Timeline) -> Iterator[Candidate]:
    device = device_rows(timeline)
    layout = device[timeline.kernel_class[device] == KernelClass.LAYOUT]
    # Volumes have a layout of their own (`volumetric-layout`).
    layout = layout[~is_among(layout, library_transposes(timeline, volume_convolutions(timeline)))]
    if not len(layout):
        return
    occurrences = [
        Occurrence(anchor, Edit(scales=(Scale(rows, 0.0),)), rows) for anchor, rows in by_model_call(timeline, layout)
    ]
    grouped = _grouped_share(timeline)
    share = Evidence("grouped", "grouped convolutions in convolution time", round(100 * grouped), "%")
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="convolutions run on NCHW tensors and are transposed around each call",
            remedy="channels_last",
            occurrences=group,
            evidence=(transposes_evidence(timeline, layout), share),
            probability=_UNSURE if grouped > _GROUPED_SHARE else 0.9,
        )


def _grouped_share(timeline: Timeline) -> float:
    convs = convolutions(timeline)
    if not len(convs):
        return 0.0
    has_groups = np.array(of_each(timeline.trace, convs, is_grouped), dtype=np.bool_)
    has_groups &= ~is_named(timeline.trace, convs, lambda name: name == TRANSPOSED_CONVOLUTION)
    time = np.array([timeline.trace.dur_ns[rows].sum() for rows in launched_by(timeline, convs)])
    return float(time[has_groups].sum() / time.sum()) if time.sum() else 0.0


def _on_cpu(timeline: Timeline) -> Iterator[Candidate]:
    in_nchw = _calls_in_nchw(timeline)
    scales = nchw_scales(timeline)
    if not in_nchw or not scales:
        return
    rows = distinct(np.concatenate([scale.rows for scale in scales]))
    occurrences = [
        Occurrence(anchor, Edit(scales=scales_within(scales, mine)), mine)
        for anchor, mine in by_model_call(timeline, rows)
        if anchor in in_nchw
    ]
    for group in by_site(timeline, occurrences):
        convs = np.sort(np.concatenate([in_nchw[occurrence.anchor] for occurrence in group]))
        yield Candidate(
            what="convolutions, pooling and norms run on NCHW tensors",
            remedy="channels_last",
            occurrences=group,
            evidence=(
                Evidence(
                    "convolutions",
                    "convolutions on NCHW tensors per step",
                    count_per_step(timeline, convs),
                    "",
                    events_of(timeline, in_typical_step(timeline, convs)),
                ),
                Evidence("time", "their forward time per step", round(us_per_step(timeline, convs) / 1000, 3), "ms"),
            ),
            probability=0.8,
        )


def _calls_in_nchw(timeline: Timeline) -> dict[int, IntArray]:
    """The model calls whose convolutions ran in NCHW, half of them at least, with those convolutions: one model (a
    teacher) may run in channels_last already beside another that doesn't."""
    found: dict[int, IntArray] = {}
    in_nchw = nchw_convolutions(timeline)
    for anchor, convs in by_model_call(timeline, convolutions(timeline)):
        is_nchw = [found is False for found in of_each(timeline.trace, convs, is_channels_last)]
        if 2 * sum(is_nchw) >= len(convs):
            found[anchor] = convs[is_among(convs, in_nchw)]
    return found


PATTERN = Pattern(
    code="TAP501",
    slug="channels-last-missing",
    title="Convolutions in NCHW",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
    stage=Stage.HARDWARE,
)
