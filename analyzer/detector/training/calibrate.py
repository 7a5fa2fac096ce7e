"""How the two models' votes are weighed, so that what they say together is what is seen: fitted on windows of families
that the models which spoke had not learned from."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from ...trace.model import BoolArray, FloatArray
from ..card import Bin, Votes
from ..combination import combine_bad, combine_kind, logit

BINS = 15
_EVEN = np.array([0.5, 0.5, 0.0])
_PULL = 1e-3
"""Of the penalty that draws the weights to even ones, where the windows say little."""


def fit_votes(
    bad: BoolArray,
    kind: FloatArray,
    weight: FloatArray,
    forest: tuple[FloatArray, FloatArray],
    network: tuple[FloatArray, FloatArray],
) -> Votes:
    """The weights that make the truth likeliest (stacked logistic regression, as in Platt's scaling).

    `bad`, shape (W,), and `kind`, (W, K), rows summing to 1 or 0, are the truth, `weight` (W,) how much each window
    counts; `forest` and `network` what each model says, P(bad) and P(kind | bad).
    """
    of_bad = _fit_bad(bad, weight, np.column_stack([logit(forest[0]), logit(network[0])]))
    shows = np.any(kind > 0, axis=1)
    of_kind = _fit_kind(kind[shows], weight[shows], forest[1][shows], network[1][shows])
    return Votes(
        bad_forest=float(of_bad[0]),
        bad_network=float(of_bad[1]),
        bad_bias=float(of_bad[2]),
        kind_forest=float(of_kind[0]),
        kind_network=float(of_kind[1]),
    )


def _fit_bad(bad: BoolArray, weight: FloatArray, logits: FloatArray) -> FloatArray:
    inputs = np.column_stack([logits, np.ones(len(logits))])
    sign = np.where(bad, 1.0, -1.0)

    def loss(w: FloatArray) -> float:
        return float(
            np.average(np.logaddexp(0.0, -sign * (inputs @ w)), weights=weight) + _PULL * ((w - _EVEN) ** 2).sum()
        )

    return minimize(loss, _EVEN, bounds=[(0.0, None), (0.0, None), (None, None)], method="L-BFGS-B").x


def _fit_kind(kind: FloatArray, weight: FloatArray, forest: FloatArray, network: FloatArray) -> FloatArray:
    if not len(kind):
        return _EVEN[:2]

    def loss(w: FloatArray) -> float:
        votes = Votes(bad_forest=0.0, bad_network=0.0, bad_bias=0.0, kind_forest=w[0], kind_network=w[1])
        said = combine_kind(votes, forest, network)
        unlikely = -(kind * np.log(said + 1e-9)).sum(axis=1)
        return float(np.average(unlikely, weights=weight) + _PULL * ((w - _EVEN[:2]) ** 2).sum())

    return minimize(loss, _EVEN[:2], bounds=[(0.0, None)] * 2, method="L-BFGS-B").x


def combine(
    votes: Votes, forest: tuple[FloatArray, FloatArray], network: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """P(bad), shape (W,), and P(kind | bad), shape (W, K), of both models together."""
    return combine_bad(votes, forest[0], network[0]), combine_kind(votes, forest[1], network[1])


def reliability(bad: BoolArray, said: FloatArray, bins: int = BINS) -> tuple[Bin, ...]:
    """What was said and what was seen, in bins of equal width of P(bad); empty ones are left out."""
    place = np.minimum((said * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    sums = np.bincount(place, weights=said, minlength=bins), np.bincount(place, weights=bad, minlength=bins)
    return tuple(
        Bin(said=float(sums[0][at] / count[at]), seen=float(sums[1][at] / count[at]), windows=int(count[at]))
        for at in np.flatnonzero(count)
    )


def calibration_error(bad: BoolArray, said: FloatArray) -> float:
    """The expected calibration error: how far bins are from the diagonal, in the mean over windows."""
    bars = reliability(bad, said)
    return sum(bar.windows * abs(bar.said - bar.seen) for bar in bars) / max(len(bad), 1)


def balanced_threshold(bad: BoolArray, said: FloatArray) -> float:
    """The P(bad) from which as many windows are called bad as are: there precision and recall are equal."""
    count = int(bad.sum())
    return float(np.sort(said)[::-1][count - 1]) if count else 1.0
