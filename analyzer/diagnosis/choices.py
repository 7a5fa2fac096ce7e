"""Which anti-patterns a language model may choose from, with what the first stage thinks of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..detected import Analysis, Detected
from ..detector.agreement import rows_of
from ..detector.model import WindowScores
from ..patterns.registry import pattern_by_slug
from ..timeline.model import Timeline
from ..trace.model import NONE, FloatArray, IntArray
from .dossier import Choice

UNEXPLAINED = "unexplained-hot-window"
"""No choice: it says that there is none."""
MOST_CHOICES = 6
_KINDS = 3
"""So many of the detector's kinds are choices, however unlikely: a choice of one is none."""
_HELD = 0.2
"""Share of what a rule found, by time, that has to lie in a stretch for the rule to be a choice there."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the detector says of some windows, weighed by the time in each."""

    bad: float
    kinds: Mapping[str, float]


def opinion_of(scores: WindowScores | None, weight: FloatArray) -> Opinion | None:
    """The mean over the windows that the detector knows; None where it knows none, or was not asked. `weight` has
    shape (windows,)."""
    if scores is None or not len(weight):
        return None
    known = weight * ~scores.is_unknown
    if not known.sum() > 0:
        return None
    known = known / known.sum()
    kinds = known @ scores.kind
    return Opinion(float(known @ scores.bad), {slug: float(kinds[at]) for at, slug in enumerate(scores.kinds)})


def weight_of(timeline: Timeline, scores: WindowScores | None, rows: IntArray) -> FloatArray:
    """Shape (windows,): the time of `rows` in each window, in ns; events of no length count as 1."""
    if scores is None:
        return np.empty(0)
    window = scores.windows.of[rows]
    is_known = window != NONE
    took_ns = np.maximum(timeline.trace.dur_ns[rows[is_known]], 1).astype(np.float64)
    return np.bincount(window[is_known], weights=took_ns, minlength=len(scores.windows)).astype(np.float64)


def found_in(analysis: Analysis, inside: np.ndarray) -> list[Detected]:
    """What rules found of which a good part lies in the marked events (bool, shape (n,))."""
    return [one for one in analysis.detected if _is_measured(one) and _share_inside(analysis, one, inside) >= _HELD]


def choices_of(by_rule: Mapping[str, float], opinion: Opinion | None, first: str = "") -> tuple[Choice, ...]:
    """The patterns that rules found, and the detector's likeliest kinds; the likeliest by either first.

    `first`, the finding's own, is always among them.
    """
    kinds = dict(opinion.kinds) if opinion is not None else {}
    likeliest = sorted(kinds, key=lambda slug: (-kinds[slug], slug))[:_KINDS]
    slugs = {*by_rule, *likeliest, *((first,) if first else ())}
    made = [_choice(slug, by_rule.get(slug, 0.0), kinds.get(slug)) for slug in slugs - {UNEXPLAINED}]
    known = [one for one in made if one is not None]
    known.sort(key=lambda one: (one.slug != first, -max(one.by_rule, one.by_detector or 0.0), one.slug))
    return tuple(known[:MOST_CHOICES])


def rules_of(detected: Iterable[Detected]) -> dict[str, float]:
    """Each pattern's probability by its rule: of several candidates the surest's."""
    found: dict[str, float] = {}
    for one in detected:
        found[one.pattern.slug] = max(found.get(one.pattern.slug, 0.0), one.candidate.probability)
    return found


def _is_measured(one: Detected) -> bool:
    candidate = one.candidate
    return not (candidate.informational or candidate.unmeasured or candidate.needs_source)


def _share_inside(analysis: Analysis, one: Detected, inside: np.ndarray) -> float:
    rows = rows_of(one.candidate)
    took_ns = np.maximum(analysis.timeline.trace.dur_ns[rows], 1)
    return float(took_ns[inside[rows]].sum() / max(took_ns.sum(), 1))


def _choice(slug: str, by_rule: float, by_detector: float | None) -> Choice | None:
    pattern = pattern_by_slug(slug)
    if pattern is None:
        return None
    rounded = None if by_detector is None else round(by_detector, 3)
    return Choice(slug, pattern.title, pattern.stage, round(by_rule, 3), rounded)
