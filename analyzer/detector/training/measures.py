"""How well scores agree with the truth, with intervals over runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from ...trace.model import BoolArray, FloatArray, IntArray
from ..card import Figures, Interval
from .calibrate import calibration_error
from .dataset import Dataset, shown_kinds

DRAWS = 200


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of some windows, and the truth about them."""

    bad: BoolArray
    """Shape (W,)."""
    said_bad: FloatArray
    shown: BoolArray
    """Shape (W, K): the kinds that a window shows."""
    said_kind: FloatArray
    """Shape (W, K)."""
    run: IntArray

    def take(self, windows: np.ndarray) -> Said:
        """Only some of them."""
        return Said(
            self.bad[windows],
            self.said_bad[windows],
            self.shown[windows],
            self.said_kind[windows],
            self.run[windows],
        )


def said_of(dataset: Dataset, bad: BoolArray, said: tuple[FloatArray, FloatArray]) -> Said:
    """Pair what was said of all windows with the labels."""
    return Said(bad, said[0], shown_kinds(dataset), said[1], dataset.run[dataset.trace].astype(np.int64))


def auc(said: Said) -> float:
    """Area under the receiver's curve of P(bad); NaN if all windows are alike."""
    return float(roc_auc_score(said.bad, said.said_bad)) if 0 < said.bad.sum() < len(said.bad) else float("nan")


def average_precision(said: Said) -> float:
    """Mean precision over the bad windows; NaN without any."""
    return float(average_precision_score(said.bad, said.said_bad)) if said.bad.any() else float("nan")


def ece(said: Said) -> float:
    """Expected calibration error of P(bad)."""
    return calibration_error(said.bad, said.said_bad)


def top(count: int) -> Callable[[Said], float]:
    """Share of the bad windows that show one of the likeliest `count` kinds; what is said of no kind counts last."""

    def share(said: Said) -> float:
        shown, scores = said.shown[said.bad], said.said_kind[said.bad]
        if not len(shown):
            return float("nan")
        likeliest = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        is_named = np.take_along_axis(shown & (scores > 0), likeliest, axis=1)
        return float(is_named.any(axis=1).mean())

    return share


def measure(what: str, said: Said, seed: int, draws: int = DRAWS) -> Figures:
    """All figures; intervals are of `draws` draws of whole runs, with replacement."""
    figures = {"auc_bad": auc, "ap_bad": average_precision, "ece": ece, "kind_top1": top(1), "kind_top3": top(3)}
    drawn = [said.take(windows) for windows in _draws(said.run, seed, draws)]
    return Figures(
        what=what,
        windows=len(said.bad),
        bad_windows=int(said.bad.sum()),
        runs=len(np.unique(said.run)),
        **{name: _interval(figure, said, drawn) for name, figure in figures.items()},
    )


def _draws(run: IntArray, seed: int, draws: int) -> list[IntArray]:
    """Windows of as many runs as there are, each draw with replacement."""
    random = np.random.default_rng(seed)
    order = np.argsort(run, kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(run[order])) + 1)
    return [np.concatenate([pieces[at] for at in random.integers(0, len(pieces), len(pieces))]) for _ in range(draws)]


def _interval(figure: Callable[[Said], float], said: Said, drawn: list[Said]) -> Interval:
    values = np.array([figure(one) for one in drawn])
    values = values[~np.isnan(values)]
    low, high = np.percentile(values, (2.5, 97.5)).tolist() if len(values) else (float("nan"), float("nan"))
    return Interval(value=figure(said), low=low, high=high)
