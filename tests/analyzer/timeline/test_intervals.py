"""Interval algebra against sets of whole nanoseconds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.analyzer.timeline.intervals import Spans, check_sum, complement, covered_ns, intersection, union

pieces = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def spans(parts):
    start = np.array([s for s, _ in parts], dtype=np.int64)
    return union(start, start + np.array([d for _, d in parts], dtype=np.int64))


def moments(parts):
    return {t for s, d in parts for t in range(s, s + d)}


def covered(found: Spans):
    assert np.all(found.end_ns > found.start_ns)
    assert np.all(found.start_ns[1:] >= found.end_ns[:-1])
    return {t for s, e in zip(found.start_ns, found.end_ns, strict=True) for t in range(s, e)}


@given(pieces, pieces)
def test_union_and_intersection(left, right):
    assert covered(spans(left)) == moments(left)
    assert covered(intersection(spans(left), spans(right))) == moments(left) & moments(right)


@given(pieces, st.integers(0, 30), st.integers(0, 40))
def test_complement_and_sum(parts, start, length):
    end = start + length
    busy, window = spans(parts), Spans(np.array([start]), np.array([end]))
    free = complement(busy, start, end)
    assert covered(free) == set(range(start, end)) - moments(parts)
    if length:
        check_sum(intersection(busy, window), free, start, end)


@given(pieces, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=5))
def test_covered_time_of_each_question(parts, questions):
    start = np.array([s for s, _ in questions])
    end = start + np.array([d for _, d in questions])
    expected = [len(moments(parts) & set(range(s, e))) for s, e in zip(start, end, strict=True)]
    assert covered_ns(spans(parts), start, end).tolist() == expected


def test_a_wrong_sum_is_not_passed_over():
    busy = spans([(0, 5)])
    with pytest.raises(AssertionError, match="5 ns of 10 ns"):
        check_sum(busy, spans([]), 0, 10)
