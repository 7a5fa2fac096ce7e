"""Microseconds written as decimal text -> integer nanoseconds, exactly.

A double has no room for `1712195495519689.047` (its last bits are quarters of a microsecond), so the digits themselves
are summed, a whole column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import msgspec
import numpy as np
import numpy.typing as npt

from .model import IntArray

ByteArray = npt.NDArray[np.uint8]

INVALID = int(np.iinfo(np.int64).min)
"""Marks a text that is no finite number."""

NS_DIGITS = 3
"""Decimal places of a microsecond that a nanosecond count can hold."""
MAX_NS = 1 << 62
"""Larger times are unusable (it is the year 2116), so that an int64 can hold an event's end: start plus duration."""
MAX_WHOLE_DIGITS = 16
"""`MAX_NS` is 4.6e15 us; a 16-digit number that starts with 4 may be more."""
LONGEST = MAX_WHOLE_DIGITS + 1 + NS_DIGITS


def join_numbers(texts: Sequence[msgspec.Raw | bytes]) -> bytes:
    """JSON numbers, or strings that hold one, as one text parted by commas: what `to_nanoseconds` takes.

    Any other JSON value becomes one unusable text.
    """
    joined = b",".join(texts)
    if b'"' in joined or joined.count(b",") != len(texts) - 1:
        joined = b",".join([bytes(text).replace(b'"', b"").replace(b",", b" ") for text in texts])
    return joined


def to_nanoseconds(joined: bytes) -> IntArray:
    """Nanoseconds of the microseconds in `joined`, one for each comma and one more.

    Digits below a nanosecond are rounded to the nearest, halves to even. Missing and unusable texts give `INVALID`.
    """
    data = np.frombuffer(joined, dtype=np.uint8)
    ends = np.append(np.flatnonzero(data == ord(",")), len(data))
    starts = np.concatenate(([0], ends[:-1] + 1))
    points = _point_positions(data, starts, ends)
    result = np.full(len(ends), INVALID, dtype=np.int64)
    shapes = np.minimum(ends - starts, LONGEST + 1) * (LONGEST + 1) + np.minimum(points, LONGEST)
    for shape in np.flatnonzero(np.bincount(shapes)).tolist():
        length, point = divmod(shape, LONGEST + 1)
        if 0 < point <= MAX_WHOLE_DIGITS and length - point - 1 <= NS_DIGITS:
            rows = np.flatnonzero(shapes == shape)
            result[rows] = _sum_digits(data, starts[rows], length, point)
    for row in np.flatnonzero(result == INVALID).tolist():
        result[row] = _one(joined[starts[row] : ends[row]])
    return result


def _point_positions(data: ByteArray, starts: IntArray, ends: IntArray) -> IntArray:
    """Where each text has its decimal point; its length if it has none."""
    points = ends - starts
    at = np.flatnonzero(data == ord("."))
    if len(at) == len(ends) and bool(((starts <= at) & (at < ends)).all()):
        return at - starts
    owner = np.searchsorted(ends, at)
    points[owner] = at - starts[owner]
    return points


def _sum_digits(data: ByteArray, starts: IntArray, length: int, point: int) -> IntArray:
    """Values of texts of one shape: `length` characters with the point at `point`. `INVALID` where one is no digit."""
    digits = np.lib.stride_tricks.sliding_window_view(data, length)[starts] - np.uint8(ord("0"))
    if point < length:
        digits[:, point] = 0
    # Whole numbers: exact, and never handed to a BLAS library, whose threads would burn more time than they save.
    total = digits.astype(np.int64) @ _weights(length, point)
    if digits.max() > 9:
        total[digits.max(axis=1) > 9] = INVALID
    if point == MAX_WHOLE_DIGITS:
        total[digits[:, 0] >= 4] = INVALID
    return total


def _weights(length: int, point: int) -> IntArray:
    """What each character counts for, in ns, shape (length,)."""
    weights = np.zeros(length, dtype=np.int64)
    for column in range(length):
        if column != point:
            weights[column] = 10 ** (NS_DIGITS + (point - 1 - column if column < point else point - column))
    return weights


def _one(text: bytes) -> int:
    try:
        value = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return INVALID
    if not value.is_finite() or (value and value.adjusted() >= MAX_WHOLE_DIGITS):
        return INVALID
    ns = int((value * 10**NS_DIGITS).to_integral_value())
    return ns if abs(ns) < MAX_NS else INVALID
