"""The windows of a corpus of traces as compact arrays: what `bench.corpus` writes, training and benches read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Dataset:
    """Windows of many traces. W windows, T traces, K kinds, R runs (a run is one recorded or simulated trace; its
    variants, with less recorded in them, are traces of their own with the same run)."""

    schema: str
    """Version of features and vocabulary that the arrays were made with."""
    kinds: np.ndarray
    """Shape (K,), str: slugs, in the order of `label`'s columns."""
    feature_names: np.ndarray
    """Shape (F,), str."""
    features: np.ndarray
    """Shape (W, F), float16."""
    token: np.ndarray
    """Shape (W, length), uint16."""
    figures: np.ndarray
    """Shape (W, length, channels), float16."""
    label: np.ndarray
    """Shape (W, K), float16: share of the window's time that is spoiled by each kind, 0 to 1."""
    cost: np.ndarray
    """Shape (W,), float32: the window's share of its step's time, 0 to 1."""
    rule_score: np.ndarray
    """Shape (W, K), float16: what our rules alone say of each kind (share of the step saved times probability)."""
    region: np.ndarray
    """Shape (W,), int32: region within the trace, the same number in every step."""
    step: np.ndarray
    """Shape (W,), int16."""
    trace: np.ndarray
    """Shape (W,), int32: which trace, 0 to T - 1."""
    run: np.ndarray
    """Shape (T,), int32."""
    family: np.ndarray
    """Shape (T,), str."""
    device: np.ndarray
    """Shape (T,), str: "cpu" for real recordings on the CPU, else the simulated or real device's name."""
    source: np.ndarray
    """Shape (T,), str: "cpu", "simulated" or "cuda"."""
    training: np.ndarray
    """Shape (T,), bool: whether the recorded program trains."""
    variant: np.ndarray
    """Shape (T,), str: "full", "no stacks", "no shapes", "neither", "device only"."""
    injected: np.ndarray
    """Shape (T, K), bool: the trace's own labels."""

    def save(self, path: Path) -> None:
        """Write as a compressed `.npz`."""
        np.savez_compressed(
            path, allow_pickle=False, **{field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        )

    @classmethod
    def load(cls, path: Path) -> Dataset:
        """Read what `save` wrote. Raises OSError, ValueError (no such file, damaged, or pickled) or KeyError."""
        with np.load(path, allow_pickle=False) as stored:
            values = {field.name: stored[field.name] for field in fields(cls)}
        return cls(**{**values, "schema": str(values["schema"])})
