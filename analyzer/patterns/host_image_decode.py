"""host-image-decode: images or films are decoded on the host, and the step waits for it.

Why it is slow: decoding a JPEG takes a core some milliseconds, a film much more; readers that go through a film frame
by frame decode all of it for the few frames that are used.
Trace: frames of decoders (PIL, OpenCV, torchvision.io, PyAV, imageio, ...) on the thread that runs the step, 5 % of the
step or more; or waits for a loader's workers, where the source shows that they decode.
Edit: with a device a third of the decoders' time is left, on the CPU two thirds (a faster decoder, or a smaller decoded
size); of waits for workers a half.
Gate: decoding under 5 % of the step; workers' waits whose data set does not decode; operators that decode on
the device already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.model import Timeline
from ..timeline.python_work import frames_named, is_within_step
from ..timeline.select import count_per_step, events_of, in_typical_step, is_noticeable, launched_by, outermost
from .base import Candidate, FixKind, Occurrence, Pattern
from .host_calls import of_one_function, scaled
from .loading import LEAST_SHARE, come_in_bursts, starved_waits

_DECODES = re.compile(
    r"(^|/)PIL/(Image\.py\(\d+\): (open|load)|ImageFile\.py\(\d+\): load|\w+ImagePlugin\.py\(\d+\): \w+)$"
    r"|^<built-in method decode of ImagingDecoder object|^<built-in function (imread|imdecode|imreadmulti)>"
    r"|^<built-in method (read|grab|retrieve) of cv2\.VideoCapture object"
    r"|torchvision/(io/(image|video|video_reader)\.py\(\d+\): (read|decode)_\w+|datasets/folder\.py\(\d+\): \w*loader)$"
    r"|(^|/)(av|decord|torchcodec|imageio|skvideo|pyvips|tifffile|pydicom|nibabel|rasterio|turbojpeg)/"
    r"|(^|/)skimage/io/|: (read_video\w*|decode_jpeg\w*|pil_loader|cv2_loader)$"
)
_LEFT_WITH_DEVICE = 1 / 3
_LEFT_ON_CPU = 2 / 3
_LEFT_OF_WAITS = 0.5


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place that decodes in the main process, or that waits for workers which may decode."""
    frames = frames_named(timeline, _DECODES)
    rows = outermost(timeline, frames[is_within_step(timeline, frames)])
    works_on_device = np.array([len(launched) > 0 for launched in launched_by(timeline, rows)], dtype=np.bool_)
    left = _LEFT_ON_CPU if timeline.is_cpu_only else _LEFT_WITH_DEVICE
    for functions in of_one_function(timeline, rows[~works_on_device]):
        if is_noticeable(timeline, np.concatenate(functions), LEAST_SHARE):
            occurrences = tuple(scaled(timeline, calls, left) for calls in functions)
            yield _candidate(timeline, occurrences, "images are decoded on the host", probability=0.8)
    for waits in starved_waits(timeline):
        occurrences = tuple(scaled(timeline, np.array([row]), _LEFT_OF_WAITS) for row in waits.tolist())
        what = "the step waits for workers that decode images"
        yield replace(_candidate(timeline, occurrences, what, probability=0.6), needs_source=True)


def _candidate(timeline: Timeline, occurrences: tuple[Occurrence, ...], what: str, *, probability: float) -> Candidate:
    rows = np.sort(np.concatenate([one.cost_rows for one in occurrences]))
    events = events_of(timeline, in_typical_step(timeline, rows))
    longest_ms = float(timeline.trace.dur_ns[rows].max()) / 1e6
    return Candidate(
        what=what,
        remedy="a faster decoder",
        occurrences=occurrences,
        evidence=(
            Evidence("calls", "decodings or waits per step", count_per_step(timeline, rows), "", events),
            Evidence("longest", "longest of them", round(longest_ms, 3), "ms"),
        ),
        is_periodic=come_in_bursts(timeline, rows),
        probability=probability,
    )


PATTERN = Pattern(
    code="TAP104",
    slug="host-image-decode",
    title="Images decoded on the host",
    fix=FixKind.UNSAFE,
    find=find,
    group="data and host",
    stage=Stage.HARDWARE,
)
