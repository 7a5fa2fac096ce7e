"""Whether the arrays of a corpus go together. Training would fail on others far from their cause, or learn nonsense."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .. import vocabulary
from ..sequence import CHANNELS

_AXES = {
    "schema": "",
    "kinds": "K",
    "feature_names": "F",
    "features": "WF",
    "token": "WL",
    "figures": "WLC",
    "label": "WK",
    "cost": "W",
    "rule_score": "WK",
    "region": "W",
    "step": "W",
    "trace": "W",
    "run": "T",
    "family": "T",
    "device": "T",
    "source": "T",
    "training": "T",
    "variant": "T",
    "injected": "TK",
}
"""Axes of each array: Windows, Traces, Kinds, Features, the sequences' Length and Channels."""
_TYPES = {"schema": "U", "kinds": "U", "feature_names": "U", "features": "f", "figures": "f", "label": "f", "cost": "f",
          "rule_score": "f", "token": "ui", "region": "ui", "step": "ui", "trace": "ui", "run": "ui", "family": "U",
          "device": "U", "source": "U", "training": "b", "variant": "U", "injected": "b"}  # fmt: skip
"""Kinds of numpy types that each may have."""


def check_shapes(values: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError if types or shapes are others than a dataset has."""
    sizes = {"C": len(CHANNELS)}
    for name, axes in _AXES.items():
        value = values[name]
        if value.dtype.kind not in _TYPES[name] or value.ndim != len(axes):
            raise ValueError(f"{name} is {value.dtype} of shape {value.shape}")
        for axis, size in zip(axes, value.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"{name} has shape {value.shape}, which does not fit the other arrays")
    if not all(sizes.values()):
        raise ValueError("there are no windows, or nothing is known of them")


def check_values(values: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError if numbers are out of their range. Only `features` may be NaN, for what is missing."""
    most = {"label": 1.0, "cost": 1.0, "token": vocabulary.SIZE - 1, "trace": len(values["run"]) - 1, "run": np.inf}
    for name, largest in most.items():
        if not np.all((values[name] >= 0) & (values[name] <= largest)):
            raise ValueError(f"{name} has values that are not between 0 and {largest:g}")
    if np.any(np.isinf(values["features"])) or not np.all(np.isfinite(values["figures"])):
        raise ValueError("features or figures have values that are no numbers")
