"""The detector on traces that other people recorded on real devices, none of which it learned from.

Healthy recordings should score low everywhere. In the others the windows that carry what is known to be wrong should be
among the worst tenth: of all windows by P(bad), or by P(kind) where the question is where that fault is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torchtraceap.analyzer.detector.inputs import make_inputs
from torchtraceap.analyzer.detector.scorer import Detector
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import FloatArray
from torchtraceap.analyzer.trace.read import read_trace

from .rule_scores import rule_scores

HEALTHY = ("S12", "S13")
LAST_LOOK = ("S01", "S05", "S10", "S16")
"""Kept for the end: nobody who changes the detector looks at them before."""
TOP_DECILE = 90.0


@dataclass(frozen=True, slots=True)
class Carrier:
    """The window that carries most of a known finding."""

    slug: str
    region: str
    bad: float
    rank_pct: float
    """By P(bad): share of the trace's windows that score no higher, half of the equal ones counted."""
    kind_rank_pct: float
    """The same by P(kind) of the finding's kind: where all of a trace is bad for one reason, this tells where the
    others are. NaN if the detector does not know the kind."""
    kind_place: int
    """Place of the finding's kind among the window's likeliest, from 1; 0 if the detector does not know the kind."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One trace."""

    name: str
    windows: int
    unknown_pct: float
    median_bad: float
    largest_bad: float
    carriers: tuple[Carrier, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.name in HEALTHY


def look(folder: Path, detector: Detector, last_look: bool) -> Iterator[Seen]:
    """Score each trace that the folder's `truth.json` says something of."""
    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    for name, wanted in sorted(truth.items()):
        short = name.partition("_")[0]
        slugs = (*wanted.get("warn", ()), *wanted.get("must", ()))
        if not (folder / name).is_file() or (short in LAST_LOOK) != last_look or not (slugs or short in HEALTHY):
            continue
        timeline = build_timeline(read_trace(folder / name))
        inputs = make_inputs(timeline)
        if not len(inputs.windows):
            continue
        scores = detector.score_inputs(inputs)
        carried = rule_scores(timeline, inputs.windows, slugs) if slugs else np.zeros((len(inputs.windows), 0))
        yield Seen(
            name=short,
            windows=len(inputs.windows),
            unknown_pct=100.0 * float(scores.is_unknown.mean()),
            median_bad=float(np.median(scores.bad)),
            largest_bad=float(scores.bad.max()),
            carriers=tuple(
                _carrier(
                    slug, carried[:, column], scores.bad, scores.kind, scores.kinds, inputs.windows.regions[region]
                )
                for column, slug in enumerate(slugs)
                if carried[:, column].any()
                for region in [int(inputs.windows.region[carried[:, column].argmax()])]
            ),
        )


def _carrier(
    slug: str, carried: FloatArray, bad: FloatArray, kind: FloatArray, kinds: tuple[str, ...], region: str
) -> Carrier:
    window = int(carried.argmax())
    of_kind = kind[:, kinds.index(slug)] if slug in kinds else np.full(len(bad), np.nan)
    return Carrier(
        slug=slug,
        region=region,
        bad=float(bad[window]),
        rank_pct=_rank_pct(bad, window),
        kind_rank_pct=_rank_pct(of_kind, window) if slug in kinds else np.nan,
        kind_place=int((kind[window] > of_kind[window]).sum()) + 1 if slug in kinds else 0,
    )


def _rank_pct(scores: FloatArray, window: int) -> float:
    return 100.0 * float((scores < scores[window]).mean() + (scores == scores[window]).mean() / 2)
