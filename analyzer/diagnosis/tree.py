"""The call tree round a finding: the merged tree of the steady steps, down to what is dear or what the finding is of.

From the step down the dearest node is taken first, where what lies on the way to the finding's events, or below them,
counts more than the rest. What only passes on to what it calls is then left out.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from ..timeline.columns import is_among
from ..timeline.model import Timeline
from ..trace.model import DEVICE_CATEGORIES, HOST_CATEGORIES, NONE, Category, FloatArray, IntArray
from .dossier import TreeRow
from .merged import Merged, below, merged_tree, summed_up

MOST_ROWS = 20
_SPARE = 2
"""So many times as many nodes are taken at first: some only pass on."""
_LEAST_SHARE = 0.005
"""Of the step, for what is not the finding's."""
_ELSEWHERE = 0.2
"""What a node counts that has nothing to do with the finding."""
_OF_FINDING = 0.5
"""What counts a node that holds all of the finding's time, beside its share of the step."""
_PASSES_ON = 0.9
"""Share of a call's time, host's and device's, in a single call below it."""


def call_tree(timeline: Timeline, rows: IntArray, most: int = MOST_ROWS) -> tuple[TreeRow, ...]:
    """At most so many rows of the call tree, parents before children; `rows` are the finding's events."""
    merged = merged_tree(timeline)
    share = _shares(timeline, merged)
    chosen = _Chosen(merged, share, _scores(timeline, merged, share, rows), most)
    is_known = not timeline.is_cpu_only
    return tuple(
        TreeRow(
            id=f"t{number}",
            depth=depth,
            name=merged.names[node],
            calls=float(merged.calls[node]),
            total_us=float(merged.total_us[node]),
            self_us=float(merged.self_us[node]),
            share_pct=round(100.0 * float(share[node]), 2),
            device_us=float(merged.device_us[node]) if is_known else None,
        )
        for number, (node, depth) in enumerate(chosen.rows(), 1)
    )


def _shares(timeline: Timeline, merged: Merged) -> FloatArray:
    """The host's or the device's share of the step, whichever is the greater; of the step itself 1."""
    share = np.maximum(merged.total_us, merged.device_us) / max(timeline.step_us, 1e-9)
    share[0] = 1.0
    return share


def _scores(timeline: Timeline, merged: Merged, share: FloatArray, rows: IntArray) -> FloatArray:
    """How much each node tells of the finding."""
    trace = timeline.trace
    rows = rows[is_among(trace.cat[rows], (*HOST_CATEGORIES, *DEVICE_CATEGORIES)) & (merged.of[rows] != NONE)]
    took_ns = np.maximum(trace.dur_ns[rows], 1).astype(np.float64)
    own = np.bincount(merged.of[rows], weights=took_ns, minlength=len(merged)).astype(np.float64)
    inside = summed_up(merged, own)
    part = inside / max(inside[0], 1.0)
    is_related = below(merged, own > 0) & (np.arange(len(merged)) > 0) | (part > 0)
    return share * np.where(is_related, 1.0, _ELSEWHERE) + _OF_FINDING * part


class _Chosen:
    """The nodes that are shown, as a tree of their own."""

    def __init__(self, merged: Merged, share: FloatArray, score: FloatArray, most: int) -> None:
        self._merged = merged
        self._share = share
        self._score = score
        self._below: dict[int, list[int]] = {}
        self._take(most * _SPARE)
        self._leave_out_what_passes_on(0)
        self._prune(most)

    def rows(self) -> list[tuple[int, int]]:
        """Nodes with their depths, the dearest of those side by side first."""
        found: list[tuple[int, int]] = []
        waiting = [(0, 0)]
        while waiting:
            node, depth = waiting.pop()
            found.append((node, depth))
            ordered = sorted(self._below.get(node, ()), key=lambda child: (self._share[child], -child))
            waiting.extend((child, depth + 1) for child in ordered)
        return found

    def _take(self, most: int) -> None:
        children = _children(self._merged)
        heap, taken = [(-1.0, 0)], 0
        while heap and taken < most:
            _, node = heappop(heap)
            taken += 1
            if node:
                self._below.setdefault(int(self._merged.parent[node]), []).append(node)
            for child in children.get(node, ()):
                if self._score[child] >= _LEAST_SHARE:
                    heappush(heap, (-float(self._score[child]), child))

    def _leave_out_what_passes_on(self, node: int) -> None:
        """A frame or a range whose time is that of one call in it goes; of operators the outer one stays."""
        inner: list[int] = []
        waiting = self._below.pop(node, [])[::-1]
        while waiting:
            child = waiting.pop()
            only = self._below.get(child, [])
            if len(only) == 1 and self._passes_on(child, only[0]):
                if self._merged.cat[child] == Category.CPU_OP:
                    if self._merged.cat[only[0]] == Category.CPU_OP:
                        self._below[child] = self._below.pop(only[0], [])
                        waiting.append(child)
                        continue
                elif self._merged.cat[only[0]] not in DEVICE_CATEGORIES and self._is_wrapper(child):
                    del self._below[child]
                    waiting.append(only[0])
                    continue
            inner.append(child)
        if inner:
            self._below[node] = inner
        for child in inner:
            self._leave_out_what_passes_on(child)

    def _passes_on(self, outer: int, inner: int) -> bool:
        merged = self._merged
        return (
            merged.total_us[inner] >= _PASSES_ON * merged.total_us[outer]
            and merged.device_us[inner] >= _PASSES_ON * merged.device_us[outer]
        )

    def _is_wrapper(self, node: int) -> bool:
        """Whether it is a frame of a file, not the call of a module: modules say where in the model it is."""
        return self._merged.cat[node] != Category.PYTHON_FUNCTION or ".py(" in self._merged.names[node]

    def _prune(self, most: int) -> None:
        """Leaves go, those that tell least first, until there are no more than `most` nodes."""
        above = {child: node for node, children in self._below.items() for child in children}
        leaves = [(float(self._score[node]), -node) for node in above if not self._below.get(node)]
        leaves.sort(reverse=True)
        for _ in range(len(above) + 1 - most):
            node = -leaves.pop()[1]
            parent = above[node]
            self._below[parent].remove(node)
            if not self._below[parent] and parent:
                leaves.append((float(self._score[parent]), -parent))
                leaves.sort(reverse=True)


def _children(merged: Merged) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for node, parent in enumerate(merged.parent.tolist()):
        if parent != NONE:
            found.setdefault(parent, []).append(node)
    return found
