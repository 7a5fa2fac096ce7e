"""`analyze(trace) -> Analysis` is the whole analyzer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from .patterns.base import Candidate, Pattern
from .patterns.registry import selected_patterns
from .timeline.build import build_timeline
from .timeline.job import Rank, align, rank_of
from .timeline.model import Timeline
from .trace.limits import TraceError
from .trace.model import Trace


@dataclass(frozen=True, slots=True)
class Detected:
    """A candidate with the pattern that found it."""

    pattern: Pattern
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Analysis:
    """A trace's timeline and what the rules found in it; `assess.to_finding` prices each by replay."""

    timeline: Timeline
    detected: tuple[Detected, ...]
    failures: tuple[str, ...] = ()
    """Rules that raised an exception, in words."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set. `min_saving_pct` parts information from hint; `select` and `ignore` name slugs or codes."""

    min_saving_pct: float = 1.0
    select: Collection[str] = ()
    ignore: Collection[str] = ()


DEFAULTS = Options()


def analyze(trace: Trace, options: Options = DEFAULTS) -> Analysis:
    """Work out what the trace means and run the selected rules over it."""
    return detect(build_timeline(trace), options)


def analyze_job(ranks: Iterable[Trace | str], options: Options = DEFAULTS) -> Analysis:
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
    return detect(replace(lowest[1], job=align(known, lowest[0], lost)), options)


def detect(timeline: Timeline, options: Options = DEFAULTS) -> Analysis:
    """What the selected rules find, in order of code; nothing is priced yet."""
    detected: list[Detected] = []
    failures: list[str] = []
    for pattern in selected_patterns(options.select, options.ignore):
        try:
            detected += [Detected(pattern, candidate) for candidate in pattern.find(timeline)]
        except Exception as error:  # noqa: BLE001 - one rule's fault must not cost the findings of the others
            failures.append(f"the rule {pattern.slug} failed and found nothing: {type(error).__name__}: {error}")
    return Analysis(timeline, tuple(detected), tuple(failures))
