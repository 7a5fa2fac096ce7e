"""How probable a finding is, by two voices: the rule that found it, and the detector, which knows no rule.

    logit p = logit p(rule) + 0.4 (logit P(kind) - logit usual P(kind)) + 0.25 min(0, logit P(bad) - logit usual P(bad))

P(kind) and P(bad) are means over the windows that hold the finding, weighed by its time in each; "usual" is the share
of the windows learned from, that of a kind no less than 2 %. That windows are bad says nothing for one reason among
many, so P(bad) only ever lowers. These are the sums of naive Bayes, where independent voices weigh 1; rule and detector
read the same events, so the detector's weighs less, and `MOST` bounds what it may change: no rule that says 0.7 or
more becomes a hint by the word of the detector, which takes one kind in five for another. The weights are set, not
fitted.

What is not a matter of probability has one voice: statements about the recording, and what only the source can tell.
So has a finding of a kind that the detector has not learned, or in windows that are unlike all that it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..findings import Evidence
from ..patterns.base import Candidate
from ..timeline.model import Timeline
from ..trace.model import NONE, FloatArray, IntArray
from .combination import logit, sigmoid
from .model import WindowScores

KIND_WEIGHT = 0.4
BAD_WEIGHT = 0.25
MOST = 0.8
"""Of the logit: the detector's whole say."""
SUREST = 0.98
"""A rule that says 1 means this: something may always be mistaken."""
_LEAST_USUAL = 0.02
_LEAST_KNOWN = 0.5
"""Share of a finding's time in windows that the detector knows, below which it has no say."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A finding's probability, and what the detector added to it."""

    probability: float
    evidence: tuple[Evidence, ...] = ()


def weigh(timeline: Timeline, slug: str, candidate: Candidate, scores: WindowScores | None) -> Opinion:
    """The probability of a rule's candidate once the detector was heard, if there is one."""
    if scores is None or slug not in scores.kinds or not _is_probable(candidate):
        return Opinion(candidate.probability)
    time_ns = time_in_windows(timeline, candidate, scores)
    known_ns = time_ns * ~scores.is_unknown
    if not known_ns.any() or known_ns.sum() < _LEAST_KNOWN * time_ns.sum():
        return Opinion(candidate.probability)
    weight = known_ns / known_ns.sum()
    kinds = weight @ scores.kind
    bad, column = float(weight @ scores.bad), scores.kinds.index(slug)
    usual = max(float(scores.usual_kind[column]), _LEAST_USUAL)
    added = KIND_WEIGHT * _gain(kinds[column], usual) + BAD_WEIGHT * min(_gain(bad, scores.usual_bad), 0.0)
    own = _logit(min(max(candidate.probability, 1 - SUREST), SUREST))
    probability = float(sigmoid(np.array(own + np.clip(added, -MOST, MOST))))
    return Opinion(round(probability, 3), _in_words(kinds, bad, column, scores))


def rows_of(candidate: Candidate) -> IntArray:
    """The events whose time is the candidate's cost; where there are none, what it is found by."""
    costs = [occurrence.cost_rows for occurrence in candidate.occurrences]
    if any(len(rows) for rows in costs):
        return np.unique(np.concatenate(costs)).astype(np.int64)
    return np.unique(np.array([occurrence.anchor for occurrence in candidate.occurrences], dtype=np.int64))


def time_in_windows(timeline: Timeline, candidate: Candidate, scores: WindowScores) -> FloatArray:
    """Shape (windows,): the candidate's time in each window, in ns; events of no length count as 1."""
    rows = rows_of(candidate)
    window = scores.windows.of[rows]
    known = window != NONE
    took_ns = np.maximum(timeline.trace.dur_ns[rows[known]], 1).astype(np.float64)
    return np.bincount(window[known], weights=took_ns, minlength=len(scores.windows)).astype(np.float64)


def _is_probable(candidate: Candidate) -> bool:
    """Whether there is a doubt that events could settle."""
    return bool(candidate.occurrences) and not (
        candidate.informational or candidate.unmeasured or candidate.needs_source
    )


def _in_words(kinds: FloatArray, bad: float, column: int, scores: WindowScores) -> tuple[Evidence, ...]:
    """What the detector says of the windows; what it would rather blame, where that is something else."""
    said = Evidence(
        "detector",
        "detector: probability that these windows are slow for this reason",
        round(float(kinds[column]), 2),
        "",
    )
    likeliest = int(np.argmax(kinds))
    if bad < scores.threshold or likeliest == column:
        return (said,)
    instead = f"{scores.kinds[likeliest]} ({kinds[likeliest]:.2f})"
    return (said, Evidence("detector-instead", "detector: the likeliest reason", instead, ""))


def _gain(said: float, usual: float) -> float:
    return _logit(said) - _logit(usual)


def _logit(probability: float) -> float:
    return float(logit(np.array(probability)))
