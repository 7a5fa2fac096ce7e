"""The card of an adapter: what it belongs to, what it learned from, how, how well it does, and what it is not."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..dossier import NO_PATTERN
from ..prompt import PROMPT_VERSION
from .checkpoint import Point, Progress
from .pairs import Pair

if TYPE_CHECKING:
    from .base import Base
    from .exam import Figures
    from .train import Settings

CARD, PAGE = "card.json", "README.md"
LOSSES = "loss.csv"
_PACKAGES = ("torch", "transformers", "peft", "bitsandbytes", "torchtraceap")
_LIMITS = (
    "It chooses among the patterns and fixes that it is offered, and words what the evidence says; it knows nothing of "
    "PyTorch beyond that.",
    "It has learned from answers that a program wrote from labelled traces: what labels and rules miss, it misses.",
    "What it says is checked before it is shown: figures against the evidence, ids against the lists. Unchecked, its "
    "sentences prove nothing.",
)


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What it learned from, and what it never saw."""

    pairs: int
    none_pairs: int
    """Of those, the ones with nothing wrong."""
    patterns: int
    runs: int
    families: tuple[str, ...]
    exam_pairs: int
    exam_families: tuple[str, ...]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Learned:
        """Count the pairs of both splits."""
        known = [pair for pair in pairs if pair.split == "train"]
        exam = [pair for pair in pairs if pair.split == "exam"]
        return cls(
            pairs=len(known),
            none_pairs=sum(pair.answer.pattern == NO_PATTERN for pair in known),
            patterns=len({pair.answer.pattern for pair in known} - {NO_PATTERN}),
            runs=len({pair.run for pair in known}),
            families=tuple(sorted({pair.family for pair in known})),
            exam_pairs=len(exam),
            exam_families=tuple(sorted({pair.family for pair in exam})),
        )


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """See the head of the file."""

    base: str
    weights: str
    """As they were while it was trained."""
    prompt_version: int
    learned: Learned
    settings: dict[str, Any]
    """Of the training, by name."""
    updates: int
    pairs_learned: int
    """Repetitions counted; fewer than there are if the time was over."""
    tokens: int
    minutes: float
    first_loss: float
    """Mean of the first tenth of the updates; the next, of the last."""
    last_loss: float
    limits: tuple[str, ...] = _LIMITS
    versions: dict[str, str]
    figures: dict[str, Any] | None = None
    """Of the exam; None if none was held."""


def card_of(base: Base, learned: Learned, settings: Settings, progress: Progress) -> Card:
    """The card of a training that is over, without an exam."""
    tenth = max(1, len(progress.curve) // 10)
    losses = [point.loss for point in progress.curve]
    return Card(
        base=base.name,
        weights=base.weights,
        prompt_version=PROMPT_VERSION,
        learned=learned,
        settings=asdict(settings),
        updates=progress.updates,
        pairs_learned=progress.curve[-1].pairs,
        tokens=progress.curve[-1].tokens,
        minutes=round(progress.seconds / 60.0, 1),
        first_loss=round(sum(losses[:tenth]) / tenth, 4),
        last_loss=round(sum(losses[-tenth:]) / tenth, 4),
        versions=_versions(),
    )


def with_figures(card: Card, figures: Figures) -> Card:
    """The card with what an exam found."""
    return msgspec.structs.replace(card, figures=asdict(figures))


def write_card(folder: Path, card: Card) -> None:
    """Write card.json, and README.md for people."""
    (folder / CARD).write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")
    (folder / PAGE).write_text(as_page(card), "utf-8")


def read_card(folder: Path) -> Card:
    """Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode((folder / CARD).read_bytes(), type=Card)


def write_losses(path: Path, curve: Sequence[Point]) -> None:
    """The loss curve, one update a line."""
    lines = ["update,pairs,tokens,seconds,loss"]
    lines += [f"{one.update},{one.pairs},{one.tokens},{one.seconds:.1f},{one.loss:.5f}" for one in curve]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def as_page(card: Card) -> str:
    """The card in Markdown."""
    learned, settings = card.learned, card.settings
    lines = [
        f"# Adapter of the diagnosis for {card.base}",
        "",
        f"A LoRA adapter, rank {settings['rank']}, for {card.base}, trained on: {card.weights}.",
        f"It answers prompts of version {card.prompt_version}. Trained by `torchtraceap train diagnosis`.",
        "",
        "## What it learned from",
        f"{learned.pairs} pairs of {learned.runs} recordings, {learned.none_pairs} of them with nothing wrong, "
        f"{learned.patterns} patterns. Families: {', '.join(learned.families)}.",
        f"Kept for the exam: {learned.exam_pairs} pairs. Families: {', '.join(learned.exam_families) or 'none'}.",
        "",
        "## How",
        f"{card.updates} updates, {card.pairs_learned} pairs, {card.tokens:,} tokens, {card.minutes:.0f} minutes; loss "
        f"per answer token {card.first_loss:.3f} at first, {card.last_loss:.3f} at last.",
        "",
        *(f"- {name}: {value}" for name, value in settings.items()),
        "",
        "## How well it does",
        *_figures(card),
        "",
        "## What it is not",
        *(f"- {limit}" for limit in card.limits),
        "",
        "## Versions",
        *(f"- {name} {number}" for name, number in card.versions.items()),
    ]
    return "\n".join(lines) + "\n"


def _figures(card: Card) -> list[str]:
    if card.figures is None:
        return ["No exam was held."]
    return ["| | |", "|---|---|", *(f"| {name} | {_figure(value)} |" for name, value in card.figures.items())]


def _figure(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "not known" if value is None else str(value)


def _versions() -> dict[str, str]:
    numbers = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            numbers[name] = "not installed"
    return numbers
