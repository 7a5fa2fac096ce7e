"""The anti-patterns that the detector tells apart: those that its models name in their card, and no others."""

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
    """The slugs that the models in `folder` know, in order of code. Raises as `read_card` does.

    The columns of a model's answers stand in the order of its card, which need not be this one.
    """
    return in_code_order(read_card(folder).kinds)
