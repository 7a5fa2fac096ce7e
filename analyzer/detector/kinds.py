"""The anti-patterns that the detector tells apart: one home of their order, and of what the shipped models know."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..patterns.registry import all_patterns
from .card import read_card


def in_code_order(slugs: Collection[str]) -> tuple[str, ...]:
    """Slugs in the order of the catalogue's codes, each once; those without a rule after the others, by name."""
    place = {pattern.slug: number for number, pattern in enumerate(all_patterns())}
    return tuple(sorted(frozenset(slugs), key=lambda slug: (place.get(slug, len(place)), slug)))


def known_kinds(folder: Path) -> tuple[str, ...]:
    """The slugs that the models in `folder` know, as their columns stand. Raises as `read_card` does."""
    return read_card(folder).kinds
