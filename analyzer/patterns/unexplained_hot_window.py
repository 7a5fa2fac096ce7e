"""unexplained-hot-window: the detector takes a part of the step for slow, and no rule says why.

What it is: windows of a region that look, in every step, like those of programs with an anti-pattern.
Why it is slow: not known. The detector has learned from spoiled programs what such windows look like; what it names is
the likeliest kind, not a cause.
Trace: P(bad) of the region over its steps; the likeliest kinds; the figures without which it would not look bad.
Gate: at least `LEAST_BAD`, recurring, not unlike all that the detector has learned from, at least 2 % of the step, and
no rule's candidate in it, not even one that costs nothing. Neighbouring regions are one finding; no saving is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from ..detector.agreement import rows_of
from ..detector.parts import Part, anchors, likeliest, shares, usual_parts
from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..trace.model import NONE, BoolArray, FloatArray, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern, Verdicts

LEAST_BAD = 0.8
LEAST_SHARE = 0.02
"""Of the step."""
_MOST_REASONS = 3


def compare(timeline: Timeline, verdicts: Verdicts) -> Iterator[Candidate]:
    """A candidate for each stretch of the typical step that is bad for no known reason."""
    scores = verdicts.scores
    if timeline.steps.is_cold or not len(scores.windows):
        return
    hot = ~_explained(verdicts) & ~scores.is_unknown & (scores.bad >= max(LEAST_BAD, scores.threshold))
    most_steps = len(distinct(scores.windows.step)) / 2
    where = anchors(timeline, scores.windows)
    parts = usual_parts(timeline, scores)
    recurring = [part for part in parts if hot[part.window] and part.steps >= most_steps]
    for _, stretch in groupby(enumerate(recurring), lambda pair: (pair[1].step, pair[1].window - pair[0])):
        run = [part for _, part in stretch]
        first, last = (np.array([part.window]) for part in (run[0], run[-1]))
        share = float(shares(timeline, scores.windows, first, last)[0])
        if share >= LEAST_SHARE:
            yield from _candidate(timeline, verdicts, run, share, where)


def _explained(verdicts: Verdicts) -> BoolArray:
    """Shape (windows,): whether any window of the same region holds what a rule found."""
    windows = verdicts.scores.windows
    rows = [rows_of(candidate) for candidate in verdicts.candidates]
    rows += [np.array([one.anchor for one in each.occurrences], dtype=np.int64) for each in verdicts.candidates]
    held = windows.of[np.concatenate(rows)] if rows else np.empty(0, dtype=np.int32)
    return is_among(windows.region, distinct(windows.region[held[held != NONE]]))


def _candidate(
    timeline: Timeline, verdicts: Verdicts, run: list[Part], share: float, where: IntArray
) -> Iterator[Candidate]:
    """What is told of neighbouring parts, from the dearest of them; nothing where no host event stands for any."""
    scores, dearest = verdicts.scores, max(run, key=lambda part: (part.anchor != NONE, part.share))
    same = np.flatnonzero(scores.windows.region == scores.windows.region[dearest.window])
    rows = distinct(where[same][where[same] != NONE])
    if not len(rows):
        return
    weight = np.array([part.share for part in run])
    at = np.array([part.window for part in run])
    kinds = likeliest(scores.kinds, _mean(scores.kind[at], weight))
    reasons = verdicts.reasons(np.array([dearest.window]))[0][:_MOST_REASONS]
    named = run[0].name if len(run) == 1 else f"{run[0].name} to {run[-1].name}"
    yield Candidate(
        what="the detector takes this part of the step for slow, and no rule says why",
        remedy=f"it looks like {' or '.join(f'{slug} ({p:.2f})' for slug, p in kinds)}" if kinds else "",
        occurrences=tuple(Occurrence(row, Edit()) for row in rows.tolist()),
        evidence=(
            Evidence("part", "part of the step", named, ""),
            *(Evidence(f"reason-{number}", *_split(reason), "") for number, reason in enumerate(reasons, 1)),
        ),
        probability=round(float(_mean(scores.bad[at], weight)), 3),
        cost_us_per_step=share * timeline.step_us,
        unexplained=True,
    )


def _mean(values: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray(weight @ values / weight.sum())


def _split(reason: str) -> tuple[str, str]:
    """The name of a figure, and what is said of it."""
    name, _, said = reason.partition(": ")
    return name, said


PATTERN = Pattern(
    code="TAP991",
    slug="unexplained-hot-window",
    title="Slow for a reason that no rule knows",
    fix=FixKind.ADVICE,
    group="meta",
    compare=compare,
)
