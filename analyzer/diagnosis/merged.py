"""The steady steps' call trees laid over each other: calls of one name below one path of names are one node.

Module instances of a class count as one name, as do objects at different addresses. Python's and PyTorch's own frames,
and calls that launch a kernel, are left out: their children are their callers', and so is their own time. Device work
hangs below the operator that launched it, by kernel name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..timeline.columns import distinct, is_among
from ..timeline.memo import once
from ..timeline.model import Timeline
from ..timeline.roots import MODULE_PREFIX
from ..timeline.sites import is_library_frame, without_identity
from ..timeline.tree import STEP_PREFIX
from ..trace.model import HOST_CATEGORIES, NONE, BoolArray, Category, FloatArray, Int32Array, IntArray
from .text import name

_FOLDERS = re.compile(r"^.*/(?=[^/]+/[^/]+\.py\(\d+\): )")
_LAUNCH = re.compile(r"(cuda|cu|hip|hipExt)(Module)?LaunchKernel(Ex|ExC|Cooperative)?(_v\d+)?$")
_BACKWARD = "autograd::engine::evaluate_function: "
STEP = "step"


@dataclass(frozen=True, slots=True)
class Merged:
    """The nodes, each after its parent; node 0 is the step. Arrays have shape (nodes,) unless said otherwise; times are
    medians over the steady steps."""

    names: tuple[str, ...]
    parent: IntArray
    depth: IntArray
    cat: IntArray
    calls: FloatArray
    total_us: FloatArray
    """On the host; 0 of device work."""
    self_us: FloatArray
    device_us: FloatArray
    """Of the device work launched below; streams that run side by side add up."""
    of: Int32Array
    """Shape (n,): the node of each event of the steady steps; NONE for others."""

    def __len__(self) -> int:
        return len(self.parent)

    def levels(self) -> Iterator[IntArray]:
        """The nodes of each depth, those right below the step first."""
        for depth in range(1, int(self.depth.max()) + 1):
            yield np.flatnonzero(self.depth == depth)


@once
def merged_tree(timeline: Timeline) -> Merged:
    """The one tree of a timeline's steady steps; only its root where there are none."""
    nodes = _Nodes(timeline)
    nodes.add_hosts()
    nodes.add_devices()
    return nodes.merged()


class _Nodes:
    """Makes the nodes, level by level."""

    def __init__(self, timeline: Timeline) -> None:
        trace = timeline.trace
        self._timeline = timeline
        self._label, self._labels = _labels(timeline)
        self._is_steady = timeline.steps.are_steady(np.arange(len(trace)))
        self._of = np.full(len(trace), NONE, dtype=np.int32)
        self._is_left_out = self._label == NONE
        self._known: dict[int, int] = {}
        self._parent, self._name, self._cat, self._depth = [NONE], [NONE], [int(Category.USER_ANNOTATION)], [0]

    def add_hosts(self) -> None:
        """Host events from the outside in."""
        tree, trace = self._timeline.tree, self._timeline.trace
        is_host = is_among(trace.cat, HOST_CATEGORIES) & self._is_steady
        outer = np.append(is_host, False)[tree.parent]
        rows = np.flatnonzero(is_host & ~outer)
        above = np.zeros(len(rows), dtype=np.int64)
        while len(rows):
            self._add(rows, above)
            start, count = tree.child_start[rows].astype(np.int64), np.diff(tree.child_start)[rows]
            first = np.cumsum(count) - count
            at = np.repeat(start - first, count) + np.arange(int(count.sum()))
            above = np.repeat(self._of[rows].astype(np.int64), count)
            rows = tree.child_rows[at].astype(np.int64)
            above, rows = above[is_host[rows]], rows[is_host[rows]]

    def add_devices(self) -> None:
        """Device work below what launched it; below the step where no launch is known."""
        rows, launches = self._timeline.device_rows.astype(np.int64), self._timeline.launches
        by_call, by_op = (np.append(self._of, NONE)[launch[rows]] for launch in (launches.runtime, launches.op))
        above = np.where(by_call != NONE, by_call, np.maximum(by_op, 0)).astype(np.int64)
        if len(rows):
            self._add(rows, above)

    def _add(self, rows: IntArray, above: IntArray) -> None:
        """Give rows their nodes, below the nodes `above`."""
        left_out = self._is_left_out[rows]
        key = above * (len(self._labels) + 1) + self._label[rows]
        keys, example = np.unique(key[~left_out], return_index=True)
        shown = rows[~left_out]
        node_of_key = np.array(
            [self._node(one, int(shown[at])) for one, at in zip(keys.tolist(), example.tolist(), strict=True)] or [0]
        )
        self._of[rows[left_out]] = above[left_out]
        self._of[shown] = node_of_key[np.searchsorted(keys, key[~left_out])]

    def _node(self, key: int, row: int) -> int:
        if key not in self._known:
            parent, label = divmod(key, len(self._labels) + 1)
            self._known[key] = len(self._parent)
            self._parent.append(parent)
            self._name.append(label)
            self._cat.append(int(self._timeline.trace.cat[row]))
            self._depth.append(self._depth[parent] + 1)
        return self._known[key]

    def merged(self) -> Merged:
        """The nodes with their figures."""
        timeline, trace = self._timeline, self._timeline.trace
        rows = np.flatnonzero(self._of != NONE)
        hosts = rows[is_among(trace.cat[rows], HOST_CATEGORIES)]
        shown = rows[~self._is_left_out[rows]]
        shown_hosts = hosts[~self._is_left_out[hosts]]
        devices = timeline.device_rows
        parent, depth = np.array(self._parent), np.array(self._depth)
        device = self._sums(devices, trace.dur_ns[devices])
        for level in range(int(depth.max()), 0, -1):
            nodes = np.flatnonzero(depth == level)
            np.add.at(device, parent[nodes], device[nodes])
        total_us = _medians(self._sums(shown_hosts, trace.dur_ns[shown_hosts])) / 1000.0
        calls = _medians(self._sums(shown, np.ones(len(shown))))
        total_us[0], calls[0] = timeline.step_us, 1.0
        return Merged(
            names=(STEP, *(self._labels[at] for at in self._name[1:])),
            parent=parent,
            depth=depth,
            cat=np.array(self._cat),
            calls=calls,
            total_us=total_us,
            self_us=_medians(self._sums(hosts, timeline.tree.self_ns[hosts])) / 1000.0,
            device_us=_medians(device) / 1000.0,
            of=self._of,
        )

    def _sums(self, rows: IntArray, values: IntArray | FloatArray) -> FloatArray:
        """Shape (nodes, steady steps): the values of each node's own events in each step."""
        steps = self._timeline.steps
        steady = steps.steady
        column = np.zeros(len(steps) + 1, dtype=np.int64)
        column[steady] = np.arange(len(steady))
        width, nodes = max(len(steady), 1), len(self._parent)
        at = self._of[rows].astype(np.int64) * width + column[steps.of[rows]]
        return np.bincount(at, weights=values, minlength=nodes * width).reshape(nodes, width).astype(np.float64)


def _labels(timeline: Timeline) -> tuple[IntArray, tuple[str, ...]]:
    """Shape (n,): for each event the number of the name that it is shown by, NONE for those left out; the names."""
    trace = timeline.trace
    numbers: dict[str, int] = {}
    table = np.full(len(trace.names), NONE, dtype=np.int64)
    occurs = distinct(trace.name).tolist()
    for at in occurs:
        if not _is_left_out(trace.names[at]):
            table[at] = numbers.setdefault(shown_name(trace.names[at]), len(numbers))
    return table[trace.name], tuple(numbers)


def _is_left_out(text: str) -> bool:
    """Whether an event is no part of what the program's author wrote or called."""
    if text.startswith(MODULE_PREFIX):
        return False
    return text.startswith(STEP_PREFIX) or is_library_frame(text) or _LAUNCH.match(text) is not None


def shown_name(text: str) -> str:
    """A short name without what differs between executions or machines."""
    return name(without_identity(_FOLDERS.sub("", text)).removeprefix(MODULE_PREFIX).removeprefix(_BACKWARD))


def _medians(each: FloatArray) -> FloatArray:
    """Of each row of figures."""
    ordered, width = np.sort(each, axis=1), each.shape[1]
    return (ordered[:, (width - 1) // 2] + ordered[:, width // 2]) / 2


def below(merged: Merged, marked: BoolArray) -> BoolArray:
    """The marked nodes and all that lies below one."""
    found = marked.copy()
    for nodes in merged.levels():
        found[nodes] |= found[merged.parent[nodes]]
    return found


def summed_up(merged: Merged, values: FloatArray) -> FloatArray:
    """The sum of each node's value and those of all below it."""
    sums = values.copy()
    for nodes in reversed(list(merged.levels())):
        np.add.at(sums, merged.parent[nodes], sums[nodes])
    return sums
