"""The catalogue's words: what each pattern's page in docs/patterns says it is, and why it is slow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "patterns"
_TITLE = re.compile(r"# .*\n+(?P<head>(?:.+\n)+)")
_WHY = re.compile(r"## Why it is slow\n+(?P<why>(?:.+\n)+)")
_SENTENCE_END = re.compile(r"(?<=[.:])\s+(?=[A-Z`])")


@dataclass(frozen=True, slots=True)
class Page:
    """Sentences of one page, in order. None of them holds a figure, or says something of a figure before it."""

    head: str
    """What the pattern is."""
    why: tuple[str, ...]
    """Why it is slow; may be empty."""


@cache
def page_of(slug: str) -> Page:
    """The page of a pattern. Raises OSError where there is none, ValueError where it does not begin as pages do."""
    text = (FOLDER / f"{slug}.md").read_text("utf-8")
    title, why = _TITLE.match(text), _WHY.search(text)
    if title is None:
        raise ValueError(f"{slug}.md has no sentence under its title")
    found = _sentences(why["why"]) if why else []
    return Page(" ".join(_sentences(title["head"])), tuple(one for one in found if _stands_alone(one)))


def _sentences(paragraph: str) -> list[str]:
    return _SENTENCE_END.split(" ".join(paragraph.split()))


def _stands_alone(sentence: str) -> bool:
    return sentence.endswith(".") and not re.search(r"\b\d|^(?:It|They|That|This|These|Such|Each|Then|So)\b", sentence)
