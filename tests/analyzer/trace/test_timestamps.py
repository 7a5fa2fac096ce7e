"""Decimal microseconds become exact nanoseconds, in every form that writers use."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.analyzer.trace.timestamps import INVALID, join_numbers, to_nanoseconds

LARGEST_US = 5_000_000_000_000_000


def one(text: bytes) -> int:
    return int(to_nanoseconds(join_numbers([text]))[0])


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        (b"5171250047678.313", 5171250047678313),
        (b"1712195495519689.047", 1712195495519689047),
        (b"1623142623460111", 1623142623460111000),
        (b"0", 0),
        (b"0.001", 1),
        (b"-1", -1000),
        (b"-0.5", -500),
        (b"1.5e3", 1500000),
        (b'"123.4"', 123400),
        (b"1.0005", 1000),
        (b"1.0015", 1002),
        (b"35115.86900000274", 35115869),
        (b"4611686018427387.903", 4611686018427387903),
    ],
)
def test_values(text: bytes, ns: int) -> None:
    assert one(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"true",
        b"1.2.3",
        b"99999999999999999999",
        b"9300000000000000",
        b"4611686018427387.904",
        b"1e999999999",
        b'"1,2"',
        b"[]",
    ],
)
def test_unusable(text: bytes) -> None:
    assert one(text) == INVALID


@given(
    st.lists(st.tuples(st.integers(-1, LARGEST_US), st.integers(0, 4), st.integers(0, 9999)), min_size=1, max_size=40)
)
def test_columns_of_mixed_shapes(numbers: list[tuple[int, int, int]]) -> None:
    texts = [f"{whole}.{part % 10**digits:0{digits}}" if digits else str(whole) for whole, digits, part in numbers]
    expected = [int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN)) for text in texts]
    expected = [value if value < 2**62 else INVALID for value in expected]
    assert to_nanoseconds(join_numbers([text.encode() for text in texts])).tolist() == expected
