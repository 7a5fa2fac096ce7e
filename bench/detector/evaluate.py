"""Every method on the same windows, with intervals over runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.results import Figure
from torchtraceap.analyzer.detector.card import Figures
from torchtraceap.analyzer.detector.training.dataset import Dataset, is_bad
from torchtraceap.analyzer.detector.training.measures import measure, said_of
from torchtraceap.analyzer.trace.model import BoolArray

from .method import Method

NAMES = ("auc_bad", "ap_bad", "ece", "kind_top1", "kind_top3")
_KINDS = NAMES[3:]
_SEED = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """How well a method did on some windows."""

    method: str
    figures: Figures
    tells_kinds: bool

    def values(self) -> Mapping[str, float]:
        """The figures that the method has, by name."""
        wanted = NAMES if self.tells_kinds else NAMES[:3]
        return {name: getattr(self.figures, name).value for name in wanted}

    def bounds(self) -> Mapping[str, float]:
        """The ends of the 95 % intervals, by name and end."""
        return {
            f"{name}_{end}": getattr(getattr(self.figures, name), end)
            for name in self.values()
            for end in ("low", "high")
        }


def fit_all(methods: Iterable[Method], dataset: Dataset, training: BoolArray) -> None:
    """Let every method learn from the windows that the shipped models learned from."""
    bad = is_bad(dataset)
    for method in methods:
        method.fit(dataset, training, bad)


def judge(method: Method, dataset: Dataset, chosen: BoolArray) -> Judged:
    """Ask a method about the chosen windows (mask) and compare with their labels."""
    said = method.answer(dataset, chosen)
    kind = said.kind if said.kind is not None else np.zeros((int(chosen.sum()), len(dataset.kinds)))
    compared = said_of(dataset.take(chosen), is_bad(dataset)[chosen], (said.bad, kind))
    return Judged(method.name, measure(method.name, compared, _SEED), said.kind is not None)


def as_figures(judged: Iterable[Judged], where: str = "") -> list[Figure]:
    """Rows of the published table; `where` goes before the method's name."""
    return [Figure(f"{where}{one.method}", name, value) for one in judged for name, value in one.values().items()]
