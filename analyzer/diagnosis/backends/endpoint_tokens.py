"""How many tokens a text may have for a tokenizer that is not known."""

from __future__ import annotations

import re

_PIECE = re.compile(r"(?P<letters>[A-Za-z]+)|(?P<spaces>[ \t]+)|(?P<wide>[^\x00-\x7f])|.|\n")
_LETTERS = 3
"""Of a word, that one token holds at least on average, in names as programs have them."""
_SPACES = 16


def most_tokens_of(text: str) -> int:
    """A guess from above. Each digit and each sign counts as a token, as Llama's tokenizer has them; a word by its
    length; a space before a word belongs to that; what is not ASCII may take a token for each byte."""
    return sum(_tokens(piece) for piece in _PIECE.finditer(text))


def _tokens(piece: re.Match[str]) -> int:
    text = piece[0]
    if piece.lastgroup == "letters":
        return -(-len(text) // _LETTERS)
    if piece.lastgroup == "spaces":
        return len(text) // _SPACES + 1 if len(text) > 1 else 0
    return len(text.encode("utf-8", "replace"))
