"""What came from a trace, a file or its name, made safe to show in a terminal."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (but tab and line feed), marks of writing direction, and halves of surrogate pairs."""
_FIRST_PICTURE = 0x2400


def printable(text: str) -> str:
    """`text` with a visible sign for each character that could steer a terminal; its length stays the same."""
    return _STEERING.sub(lambda found: _sign(found[0]), text)


def one_line(text: str) -> str:
    """`text` without line ends, so that no part of it can pass for a line of its own."""
    return " ".join(text.splitlines())


def _sign(character: str) -> str:
    return chr(_FIRST_PICTURE + ord(character)) if character < " " else "\ufffd"
