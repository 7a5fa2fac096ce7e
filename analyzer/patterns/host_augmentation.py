"""host-augmentation: the host resizes and normalises images in every step, and the step waits for it.

Why it is slow: libraries' transforms work on one image after the other, on one core, often in float32 or float64
before the image is made small. A device does the same in a fraction of the time, and needs only the `uint8` pixels.
Trace: frames of image transforms (torchvision, albumentations, transformers' image processors, PIL, OpenCV, ...) on the
thread that runs the step; without stacks, in a trace with a device, resizing operators that launch nothing. Or waits
for a loader's workers, where the source shows transforms in a costly order.
Edit: a tenth of the time is left with a device: sending pixels and launching a few kernels. On the CPU half is left: in
`uint8`, resized before anything is made float, measured with torch 2.13, eight 640 x 360 images to 224 x 224 take 10 ms
instead of 43.
Gate: transforms under 5 % of the step; transforms that run on the device already; in a CPU-only recording, transforms
inside a loader (workers are the remedy there). A device that is busy all the while gains nothing by replay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_named
from ..timeline.model import Phase, Timeline
from ..timeline.python_work import frames_named, is_within_step
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
    launched_by,
    ops_named,
    outermost,
)
from ..trace.model import IntArray
from .base import Candidate, FixKind, Pattern
from .host_calls import of_one_function, scaled
from .loading import LEAST_SHARE, come_in_bursts, starved_waits

_TRANSFORMS = re.compile(
    r"(^|/)(torchvision/transforms|albumentations|imgaug|kornia/augmentation|monai/transforms|timm/data/transforms\w*"
    r"|mmcv/(?:transforms|image)|mm\w+/datasets/(?:transforms|pipelines)|detectron2/data/transforms"
    r"|ultralytics/data/augment|scipy/ndimage|skimage/(?:transform|color|filters|exposure)"
    r"|transformers/(?:models/\w+/)?(?:image_|video_|feature_)(?:processing|transforms|extraction)\w*"
    r"|PIL/Image(?:Ops|Enhance|Filter|Chops))[/.]"
    r"|(^|/)PIL/Image\.py\(\d+\): (resize|rotate|transform|crop|convert|filter|thumbnail|transpose|reduce)$"
    r"|^<built-in function (resize|warpAffine|warpPerspective|copyMakeBorder|remap|cvtColor|GaussianBlur|medianBlur)>"
    r"|^<built-in function (flip|rotate|LUT|addWeighted|filter2D)>"
    r"|^<built-in method (resize|transform|crop|rotate|convert|filter) of ImagingCore object"
)
_READING = re.compile(
    r"/(transforms/transforms|__init__|utils|_utils)\.py\(\d+\): (__init__|<module>|__repr__|from_\w+)$"
)
_RESIZING = (
    "aten::upsample_bilinear2d",
    "aten::upsample_bicubic2d",
    "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_bicubic2d_aa",
    "aten::upsample_nearest2d",
)
_LEFT_WITH_DEVICE = 0.1
_LEFT_ON_CPU = 0.5
_LEFT_OF_WAITS = 0.8


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that transforms images on the host, or loop that waits for workers which may."""
    left = _LEFT_ON_CPU if timeline.is_cpu_only else _LEFT_WITH_DEVICE
    remedy = "transforms on uint8 images" if timeline.is_cpu_only else "transforms on the device"
    for functions in of_one_function(timeline, _transforms(timeline)):
        rows = np.sort(np.concatenate(functions))
        if is_noticeable(timeline, rows, LEAST_SHARE):
            evidence = Evidence(
                "transforms",
                "calls of transforms per step",
                count_per_step(timeline, rows),
                "",
                events_of(timeline, in_typical_step(timeline, rows)),
            )
            yield Candidate(
                what="images are transformed on the host",
                remedy=remedy,
                occurrences=tuple(scaled(timeline, calls, left) for calls in functions),
                evidence=(evidence,),
                probability=0.6 if timeline.is_cpu_only else 0.85,
            )
    for waits in starved_waits(timeline):
        yield Candidate(
            what="the step waits for workers that transform images",
            remedy="transforms on small uint8 images",
            occurrences=tuple(scaled(timeline, np.array([row]), _LEFT_OF_WAITS) for row in waits.tolist()),
            evidence=(Evidence("waits", "waits for workers per step", count_per_step(timeline, waits), ""),),
            is_periodic=come_in_bursts(timeline, waits),
            needs_source=True,
            probability=0.6,
        )


def _transforms(timeline: Timeline) -> IntArray:
    """The outermost calls that transform images on the host."""
    frames = frames_named(timeline, _TRANSFORMS)
    frames = frames[~is_named(timeline.trace, frames, _READING.search)]
    rows = outermost(timeline, frames[is_within_step(timeline, frames)])
    if not len(rows) and not timeline.is_cpu_only:
        rows = ops_named(timeline, _RESIZING)
    if timeline.is_cpu_only:
        return rows[timeline.phase[rows] != Phase.DATA]
    works_on_device = np.array([len(launched) > 0 for launched in launched_by(timeline, rows)], dtype=np.bool_)
    return rows[~works_on_device]


PATTERN = Pattern(
    code="TAP105",
    slug="host-augmentation",
    title="Images transformed on the host",
    fix=FixKind.SAFE,
    find=find,
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
