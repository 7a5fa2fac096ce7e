"""Why a window counts as bad: the features without which it would not, in plain words.

Each feature is put to what healthy windows have, alone, and each is alone left as it is with all others put to that;
what both do to the forest's answer, on average, is the feature's weight. The first alone misses features that tell the
same as another, the second those that only tell something together. (The two ends of a Shapley value's average over
orders: Lundberg and Lee, "A unified approach to interpreting model predictions", 2017.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..trace.model import FloatArray, IntArray
from .combination import logit
from .model import Feature

REASONS = 3
_SCALES = {"us": ("us", "ms", "s"), "bytes": ("bytes", "kB", "MB", "GB", "TB")}


@dataclass(frozen=True, slots=True)
class Reason:
    """One feature that makes a window look bad."""

    feature: Feature
    value: float
    """In the feature's unit."""
    healthy: float
    """The median of healthy windows; NaN where they do not have the feature."""
    weight: float
    """By how much it raises the logarithm of the odds, at the forest."""

    @property
    def text(self) -> str:
        """For people: "host per launch (launches): 11.2 us, healthy windows have 5.01 us"."""
        group, _, name = self.feature.name.rpartition(".")
        label = name.replace("_", " ") + (f" ({group.replace('_', ' ')})" if group else "")
        healthy = "no such figure" if math.isnan(self.healthy) else in_words(self.healthy, self.feature.unit, True)
        return f"{label}: {in_words(self.value, self.feature.unit)}, healthy windows have {healthy}"


def explain(
    forest: Callable[[FloatArray], FloatArray],
    features: FloatArray,
    known: tuple[Feature, ...],
    healthy: FloatArray,
    count: int = REASONS,
) -> tuple[tuple[Reason, ...], ...]:
    """For each window the `count` features that raise its P(bad) most, the strongest first; fewer if fewer do.

    `features`, shape (windows, F); `healthy`, shape (F,), what healthy windows have, NaN for nothing. `forest` answers
    P(bad) of rows of features; it is asked once.
    """
    window, column = np.nonzero(~np.isnan(features) & (features != healthy))
    if not len(window):
        return tuple(() for _ in features)
    without, alone = features[window], np.tile(healthy, (len(window), 1))
    place = np.arange(len(window))
    without[place, column] = healthy[column]
    alone[place, column] = features[window, column]
    answers = logit(forest(np.concatenate([features, healthy[None], without, alone])))
    own, none = answers[: len(features)], answers[len(features)]
    lost, gained = answers[len(features) + 1 :].reshape(2, -1)
    weight = ((own[window] - lost) + (gained - none)) / 2
    return tuple(
        tuple(
            Reason(known[column[at]], float(features[index, column[at]]), float(healthy[column[at]]), float(weight[at]))
            for at in _strongest(weight, np.flatnonzero(window == index), count)
        )
        for index in range(len(features))
    )


def _strongest(weight: FloatArray, places: IntArray, count: int) -> list[int]:
    ranked = places[np.argsort(-weight[places], kind="stable")][:count]
    return ranked[weight[ranked] > 0].tolist()


def in_words(value: float, unit: str, is_short: bool = False) -> str:
    """A feature's value as people say it: logarithms undone, three figures. `is_short`: without what a share is of."""
    if unit.startswith("%"):
        return f"{value:.0f} %" + ("" if is_short else unit[1:])
    if unit == "0 or 1":
        return "yes" if value >= 0.5 else "no"
    if "log10(1 + x)" in unit:
        return _figures(10.0**value - 1.0)
    if unit.startswith("log10 "):
        return _scaled(10.0**value, unit.removeprefix("log10 "))
    return _figures(value) if unit == "1" else f"{_figures(value)} {unit}"


def _scaled(value: float, unit: str) -> str:
    names = _SCALES.get(unit, (unit,))
    step = 0
    while step + 1 < len(names) and value >= 1000:
        value, step = value / 1000, step + 1
    return _figures(value) if unit == "1" else f"{_figures(value)} {names[step]}"


def _figures(value: float) -> str:
    """Three significant figures, without an exponent from 0.001 up."""
    if 1e-3 <= abs(value) < 1e9:
        decimals = max(2 - math.floor(math.log10(abs(value))), 0)
        text = f"{value:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.3g}"
