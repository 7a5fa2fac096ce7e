"""What the models are to say of each window, and how much each window counts in learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...trace.model import BoolArray, FloatArray
from .dataset import BAD_SHARE, Dataset, is_bad


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets and weights of the windows of a dataset."""

    is_labelled: BoolArray
    """Shape (W,): whether the window has labels of its own. Where not (NaN), only its trace's labels help."""
    bad: BoolArray
    """Shape (W,)."""
    kind: FloatArray
    """Shape (W, K): of a spoiled window the share of each kind in what is spoiled, rows sum to 1; else 0. Windows that
    are spoiled at a price too low to matter show what a kind looks like just as well, and count here."""
    weight: FloatArray
    """Shape (W,): one over the times that the window was seen, in other steps and variants of its run; mean 1."""

    def take(self, windows: np.ndarray) -> Targets:
        """Only those of some windows (a mask, or numbers)."""
        return Targets(self.is_labelled[windows], self.bad[windows], self.kind[windows], self.weight[windows])


def make_targets(dataset: Dataset) -> Targets:
    """The targets of all windows."""
    is_labelled = np.all(~np.isnan(dataset.label), axis=1)
    label = dataset.label.astype(np.float64)
    shown = np.where(label >= BAD_SHARE, label, 0.0)
    total = shown.sum(axis=1, keepdims=True)
    return Targets(
        is_labelled=is_labelled,
        bad=is_bad(dataset),
        kind=shown / np.where(total > 0, total, 1.0),
        weight=_weights(dataset),
    )


def _weights(dataset: Dataset) -> FloatArray:
    """A region counts once a run, however many steps and variants it was recorded in."""
    run = dataset.run[dataset.trace].astype(np.int64)
    key = run * (int(dataset.region.max(initial=0)) + 1) + dataset.region
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    weight = 1.0 / count[place]
    return weight / weight.mean() if len(weight) else weight


def kind_weights(targets: Targets) -> FloatArray:
    """Shape (K,): by how much more each window of a rare kind counts; mean 1 over the windows that show kinds.

    The root of the inverse frequency: rare kinds are learned, and common ones stay likelier.
    """
    frequency = (targets.kind * targets.weight[:, None]).sum(axis=0)
    raw = 1.0 / np.sqrt(np.maximum(frequency, 1.0))
    total = frequency.sum()
    return raw * total / (raw * frequency).sum() if total > 0 else np.ones_like(raw)
