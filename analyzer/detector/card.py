"""The model card: what the shipped models expect, how their votes are put together, what they learned from and how well
they did. `card.json` beside the models; training writes it, the scorer refuses what does not fit."""

from __future__ import annotations

from pathlib import Path

import msgspec

CARD = "card.json"
FOREST = "forest.onnx"
"""Input `features`, float32 (windows, features), NaN where not known. Outputs `bad` (windows, 1) and `kind`
(windows, kinds): P(bad), and P(kind) of a window that is bad."""
NETWORK = "network.onnx"
"""Inputs `token`, int64 (windows, length), `figures`, float32 (windows, length, channels), and `features` as above.
Outputs as above."""
NOVELTY = "novelty.npz"
"""What the features of the windows that were learned from look like; see `novelty.py`."""


class Votes(msgspec.Struct, frozen=True, kw_only=True):
    """How the forest's and the network's answers become one; see `combination.py`."""

    bad_forest: float
    """Weights of the two logits of P(bad), and what is added."""
    bad_network: float
    bad_bias: float
    kind_forest: float
    """Weights of the two logarithms of P(kind | bad)."""
    kind_network: float


class Interval(msgspec.Struct, frozen=True):
    """A figure with its 95 % bootstrap interval over runs; NaN is stored as null."""

    value: float | None
    low: float | None
    high: float | None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How well the detector did on windows that it had not learned from."""

    what: str
    """Which windows: "unseen families, unseen devices" and so on."""
    windows: int
    bad_windows: int
    runs: int
    auc_bad: Interval
    ap_bad: Interval
    ece: Interval
    kind_top1: Interval
    kind_top3: Interval


class Bin(msgspec.Struct, frozen=True):
    """One bar of the reliability diagram."""

    said: float
    """Mean P(bad) of its windows."""
    seen: float
    """Share of them that are bad."""
    windows: int


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """What the models learned from."""

    traces: int
    runs: int
    windows: int
    bad_windows: int
    families: tuple[str, ...]
    devices: tuple[str, ...]
    test_families: tuple[str, ...]
    test_devices: tuple[str, ...]
    windows_by_kind: dict[str, int]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    schema: str
    """Version of features and vocabulary; must be the one that this program makes."""
    features: tuple[str, ...]
    """Columns of `features`, in order."""
    kinds: tuple[str, ...]
    """Slugs: columns of `kind`, in order."""
    length: int
    """Events of a window that the network reads."""
    channels: tuple[str, ...]
    """Figures of each event, in order."""
    votes: Votes
    threshold: float
    """P(bad) from which a window counts as bad: where precision and recall balance on folds left out."""
    healthy_median: tuple[float | None, ...]
    """Of each feature over healthy windows; null where no window has it. What an explanation compares with."""
    healthy_spread: tuple[float | None, ...]
    """Half the range between the quartiles."""
    data: Data
    figures: tuple[Figures, ...]
    reliability: tuple[Bin, ...]
    """Of the folds left out."""
    limits: tuple[str, ...]
    """Sentences: where it fails, what it was not made for."""
    seed: int
    made_with: dict[str, str]
    """Versions of the libraries that trained it."""


def read_card(folder: Path) -> Card:
    """The card of the models in `folder`. Raises OSError or msgspec.MsgspecError (no card, or a damaged one)."""
    return msgspec.json.decode((folder / CARD).read_bytes(), type=Card)


def write_card(card: Card, folder: Path) -> None:
    """Write `card.json`."""
    (folder / CARD).write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=1) + b"\n")
