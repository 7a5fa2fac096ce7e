"""work-between-steps: each step stops to log, to draw, or to save.

Why it is slow: what is meant for people (scalars, histograms, images, files) is computed on the host, from tensors that
are copied there first, while the device has nothing to do.
Trace: frames of loggers, plotting and image libraries, and of functions that write files, in half of the steps or more.
Edit: the work is done in every fiftieth step, and with it the waits for its tensors.
Gate: work in fewer than half of the steps; inside the data loader; under 0.1 % of the step. A device that is busy
meanwhile gains nothing by replay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct
from ..timeline.edit import Edit, Scale
from ..timeline.model import Phase, Timeline
from ..timeline.python_work import frames_named, is_within_step
from ..timeline.select import count_per_step, events_of, in_typical_step, is_noticeable, outermost
from ..timeline.sites import group_by_site
from ..timeline.transfers import waits_in
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_WRITES = re.compile(
    r"torch/(serialization|distributed/checkpoint/\w+|jit/_serialization)\.py\(\d+\): (save|async_save)$"
    r"|safetensors/torch\.py\(\d+\): save|torchvision/io/image\.py\(\d+\): (write|encode)_"
    r"|(^|/)PIL/Image\.py\(\d+\): (save|show)$|^<built-in function (imwrite|imshow|waitKey|imencode)>"
    r"|numpy/lib/\w*npyio\w*\.py\(\d+\): (save|savez|savez_compressed|savetxt)$"
    r"|(^|/)(json|pickle)(/__init__)?\.py\(\d+\): dump$|(^|/)pandas/.*: to_(csv|json|parquet)$"
)
_SHOWS = re.compile(
    r"torch/utils/tensorboard/|torchvision/utils\.py\(\d+\): (make_grid|save_image|draw_\w+)$"
    r"|(^|/)(tensorboardX|wandb|mlflow|comet_ml|neptune|clearml|aim|swanlab|visdom|matplotlib|seaborn|plotly|imageio)/"
)
_WORK = re.compile(f"{_WRITES.pattern}|{_SHOWS.pattern}")
_NOTICEABLE_SHARE = 0.001
EVERY = 50
"""Steps from one time to the next, once the work is not done in each."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place that does such work in most steps."""
    frames = frames_named(timeline, _WORK)
    frames = frames[is_within_step(timeline, frames) & (timeline.phase[frames] != Phase.DATA)]
    rows = outermost(timeline, frames)
    for group in group_by_site(timeline, rows):
        is_usual = 2 * len(distinct(timeline.steps.of[group])) >= len(timeline.steps.steady) > 1
        if is_usual and is_noticeable(timeline, group, _NOTICEABLE_SHARE):
            yield _candidate(timeline, group)


def _candidate(timeline: Timeline, rows: IntArray) -> Candidate:
    trace = timeline.trace
    writes = any(_WRITES.search(trace.name_of(row)) for row in rows.tolist())
    events = events_of(timeline, in_typical_step(timeline, rows))
    return Candidate(
        what="each step writes files" if writes else "each step stops to log",
        remedy=f"doing it every {EVERY} steps",
        occurrences=tuple(
            Occurrence(row, Edit(scales=(Scale(np.array([row]), 1 / EVERY),), unsynced=waits), np.array([row]))
            for row, waits in zip(rows.tolist(), waits_in(timeline, rows), strict=True)
        ),
        evidence=(
            Evidence("calls", "such calls per step", count_per_step(timeline, rows), "", events),
            Evidence("first", "the first of them", trace.name_of(int(rows[0])), ""),
        ),
        probability=0.9,
    )


PATTERN = Pattern(
    code="TAP107",
    slug="work-between-steps",
    title="Logging or saving in every step",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("stack",),
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
