"""`analyze(trace) -> Analysis` is the whole analyzer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .antipatterns import AntiPatternDetector, Looking
from .detected import DEFAULTS, Analysis, Options
from .timeline.build import build_timeline
from .timeline.job import Rank, align, rank_of
from .timeline.model import Timeline
from .trace.limits import TraceError
from .trace.model import Trace


def analyze(trace: Trace, options: Options = DEFAULTS, detector: Looking | None = None) -> Analysis:
    """Work out what the trace means and run the selected rules over it, and the detector, if there is one."""
    return AntiPatternDetector(options.model_type, options, detector).detect(build_timeline(trace))


def analyze_job(ranks: Iterable[Trace | str], options: Options = DEFAULTS, detector: Looking | None = None) -> Analysis:
    """Analyse the ranks of one job together. The findings are those of its lowest rank, which knows the others.

    `ranks` gives each rank's trace, or says in words why there is none. They are taken one after the other, and of all
    but one only a few columns are kept. Raises TraceError if there is no trace among them.
    """
    known: list[Rank] = []
    lost: list[str] = []
    lowest: tuple[Rank, Timeline] | None = None
    for given in ranks:
        if isinstance(given, str):
            lost.append(given)
            continue
        timeline = build_timeline(given)
        rank = rank_of(timeline)
        known.append(rank)
        if lowest is None or rank.number < lowest[0].number:
            lowest = rank, timeline
    if lowest is None:
        raise TraceError("; ".join(lost) or "no trace of any rank")
    timeline = replace(lowest[1], job=align(known, lowest[0], lost))
    return AntiPatternDetector(options.model_type, options, detector).detect(timeline)
