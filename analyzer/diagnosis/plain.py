"""A model's sentence as plain text, or none at all: what is shown of it is what was checked, sign by sign."""

from __future__ import annotations

import re
import unicodedata

_PUNCTUATION = frozenset("–—−‘’“”×≈≤≥→°·μ")
_MARKUP = re.compile(
    r"""
    \]\s?[(\[:]                                  # a link of Markdown, its target, an image
    | <[/!?a-z]                                  # a tag, a comment, an autolink
    | &\#?\w+;                                   # a character by its name or number
    | \w://
    | \b(?:command|data|file|javascript|mailto|vbscript|vscode[\w-]*):\S
    | \bwww\.
    | [\w.+-]@[\w-]+\.\w                         # an address, which some editors link
    | \\[uxn0-7]                                 # a character by an escape
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SPACES = re.compile(r"\s+")


def plain(text: str) -> str | None:
    """`text` on one line, in compatible characters, without backquotes and what is invisible.

    None where it holds links or markup, letters other than Latin ones, or figures other than 0 to 9 (`½`, `Ⅻ`, `十`):
    those no check of numbers would understand, while a person would.
    """
    if any(_is_odd_figure(character) for character in text):
        return None
    text = unicodedata.normalize("NFKC", text).replace("`", "")
    text = "".join(kept for character in text if (kept := _shown(character)))
    text = _SPACES.sub(" ", text).strip()
    if not all(map(_is_readable, text)) or _MARKUP.search(text):
        return None
    return text


def _is_odd_figure(character: str) -> bool:
    return not character.isascii() and unicodedata.numeric(character, None) is not None


def _shown(character: str) -> str:
    """A space for what ends a line; nothing for what has no picture."""
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category == "Cf" else character


def _is_readable(character: str) -> bool:
    if character.isascii() or character in _PUNCTUATION:
        return True
    return unicodedata.category(character)[0] == "L" and unicodedata.name(character, "").startswith("LATIN ")
