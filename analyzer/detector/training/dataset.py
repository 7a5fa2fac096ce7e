"""The windows of a corpus of traces as compact arrays: what `bench.corpus` writes, training and benches read."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from ...trace.model import BoolArray
from ..arrays import load_arrays
from .checks import check_shapes, check_values

BAD_SHARE = 0.2
"""A window shows a kind if at least this share of its time is spoiled by it."""
LEAST_COST = 0.005
"""And if what is spoiled takes at least this share of the step: present is not costly."""
TEST_FAMILIES = frozenset(
    (
        "convnext",
        "swin",
        "fcos",
        "deformable_detr",
        "deeplab",
        "dit",
        "hourglass",
        "video_vit",
    )
)
"""Never learned from, over all tasks. Both lists were fixed before any result was seen."""
TEST_DEVICES = frozenset(("H100 SXM", "MI300X", "L4"))
"""Never learned from. The CPU is a device of training, whose part with test families is reported beside."""
_MOST_BYTES = 8 << 30
"""Of a part of a corpus, unpacked; ours have a twentieth of that."""
_OF_WINDOWS = ("features", "token", "figures", "label", "cost", "rule_score", "region", "step", "trace")
_OF_TRACES = ("run", "family", "device", "source", "training", "variant", "injected")


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
        """Write as an `.npz` compressed with LZMA, tables column by column: half as large as numpy's own would be."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as stored:
            for field in fields(self):
                with stored.open(f"{field.name}.npy", "w", force_zip64=True) as file:
                    value = np.asarray(getattr(self, field.name))
                    by_column = np.asfortranarray(value) if value.ndim == 2 else value
                    np.lib.format.write_array(file, by_column, allow_pickle=False)

    @classmethod
    def load(cls, path: Path) -> Dataset:
        """Read what `save` wrote. Raises OSError, ValueError (no such file, damaged, pickled, of something else, or
        arrays that do not go together)."""
        try:
            values = load_arrays(path, (field.name for field in fields(cls)), _MOST_BYTES)
            check_shapes(values)
            check_values(values)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path.name} cannot be used: {error.args[0]}") from error
        return cls(**{**values, "schema": str(values["schema"])})

    def __len__(self) -> int:
        return len(self.trace)

    @property
    def traces(self) -> int:
        """Number of traces."""
        return len(self.run)

    @classmethod
    def concatenate(cls, parts: Sequence[Dataset]) -> Dataset:
        """All windows of all parts; traces and runs are numbered on. Raises ValueError if the parts do not match."""
        first = parts[0]
        for part in parts[1:]:
            if part.schema != first.schema:
                raise ValueError(f"parts of schema {first.schema} and {part.schema} cannot be put together")
            for name in ("kinds", "feature_names"):
                if not np.array_equal(getattr(part, name), getattr(first, name)):
                    raise ValueError(f"the parts' {name.replace('_', ' ')} differ")
        values = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _OF_WINDOWS + _OF_TRACES}
        traces = np.cumsum([0, *(part.traces for part in parts)])
        runs = np.cumsum([0, *(int(part.run.max(initial=-1)) + 1 for part in parts)])
        values["trace"] = np.concatenate([part.trace + at for part, at in zip(parts, traces, strict=False)])
        values["run"] = np.concatenate([part.run + at for part, at in zip(parts, runs, strict=False)])
        return replace(first, **values)

    def take(self, windows: np.ndarray) -> Dataset:
        """Only some windows (a mask, or numbers). The traces stay as they are."""
        return replace(self, **{name: getattr(self, name)[windows] for name in _OF_WINDOWS})


def shown_kinds(dataset: Dataset) -> BoolArray:
    """Shape (W, K): whether a window shows a kind, and at a price that matters."""
    return (dataset.label >= BAD_SHARE) & (dataset.label * dataset.cost[:, None] >= LEAST_COST)


def is_bad(dataset: Dataset) -> BoolArray:
    """Shape (W,): whether a window shows any kind."""
    return np.any(shown_kinds(dataset), axis=1)
