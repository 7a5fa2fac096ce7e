"""Which ranks of a job come last to its collectives, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..timeline.job import Job
from ..trace.model import FloatArray, IntArray

_MOST_LATE = 0.25
"""Share of the ranks that can be called late; if more are, the others are early."""
_LEAST_GAP_NS = 5_000
"""Ranks that come closer together than this come together."""


@dataclass(frozen=True, slots=True)
class LateRanks:
    """Ranks (indices in the job) that are last together at some of the collectives."""

    ranks: tuple[int, ...]
    at: IntArray
    """Collectives of the job."""
    gap_ns: FloatArray
    """How much later they are at each than the first of the other ranks."""


def late_ranks(job: Job) -> list[LateRanks]:
    """At each collective those who come after the widest gap among the last."""
    if len(job.ranks) < 2 or not len(job.step):
        return []
    most = max(int(_MOST_LATE * len(job.ranks)), 1)
    order = np.argsort(-job.arrival_ns, axis=0, kind="stable")
    arrival = np.take_along_axis(job.arrival_ns, order, axis=0)
    between = arrival[:most] - arrival[1 : most + 1]
    count = between.argmax(axis=0) + 1
    gap_ns = _apart(arrival[count, np.arange(len(job.step))], arrival[0])
    groups: dict[tuple[int, ...], list[int]] = {}
    for k in np.flatnonzero(np.minimum(between.max(axis=0), gap_ns) >= _LEAST_GAP_NS).tolist():
        groups.setdefault(tuple(sorted(order[: count[k], k].tolist())), []).append(k)
    return [LateRanks(ranks, np.array(at), gap_ns[at]) for ranks, at in groups.items()]


def _apart(start_ns: FloatArray, end_ns: FloatArray) -> FloatArray:
    """Lengths of intervals less what earlier ones (by their ends) cover: one wait may hold two collectives."""
    order = np.argsort(end_ns, kind="stable")
    before = np.append(-np.inf, np.maximum.accumulate(end_ns[order])[:-1])
    length = np.empty(len(end_ns))
    length[order] = end_ns[order] - np.maximum(start_ns[order], before)
    return np.maximum(length, 0.0)
