"""How deep a piece of JSON nests, found without parsing it."""

from __future__ import annotations

import re

import numpy as np

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1


def deeper_than(text: bytes, depth: int) -> bool:
    """Whether objects and lists in `text` nest deeper than `depth`."""
    if text.count(b"[") + text.count(b"{") <= depth:
        return False
    # Brackets inside strings make the first answer a guess, nearly always a sufficient one.
    return _depth(text) > depth and _depth(_STRING.sub(b"", text)) > depth


def _depth(text: bytes) -> int:
    brackets = text.translate(None, _NOT_BRACKETS)
    if not brackets:
        return 0
    level = np.cumsum(_STEP[np.frombuffer(brackets, dtype=np.uint8)], dtype=np.int64)
    return int(level.max() - min(0, level.min()))
