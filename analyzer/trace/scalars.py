"""Numbers as traces write them -> integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .events import Scalar
from .model import NONE, IntArray

MAX_DIGITS = 18


def to_integers(values: Sequence[Scalar]) -> IntArray:
    """`values` as int64, shape (len(values),); NONE where one is no number.

    Unsigned 64-bit values keep their bits. Strings may be decimal or `0x...`.
    """
    try:
        return np.fromiter(values, dtype=np.int64, count=len(values))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return np.array([_one(value) for value in values], dtype=np.int64)


def _one(value: Scalar) -> int:
    try:
        number = int(value, 0) if isinstance(value, str) else NONE if value is None else int(value)
    except (ValueError, OverflowError):
        return NONE
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def whole_number(text: str) -> int:
    """The number that `text` is in decimal digits; NONE if it is none, or may not fit into an int64."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else NONE


def to_text(value: Scalar) -> str:
    """A label as text; "" if it was not recorded."""
    return "" if value is None else str(value)
