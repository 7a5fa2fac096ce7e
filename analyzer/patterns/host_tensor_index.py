"""host-tensor-index: a device tensor is indexed with a tensor that lies on the host, or with a list.

Why it is slow: indexing first copies the index to the device, from pageable memory, and waits for the copy, which waits
for everything queued before it; then the device runs dry until the host has launched more.
Trace: `aten::index` or `aten::index_put_` with a copy to the device inside.
Edit: the copy and its wait go: an index that is made on the device, or kept there, is there already.
Gate: indices that lie on the device; copies of the values that are put; the CPU; waits of no consequence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    outer_op,
    outermost,
    steady,
    us_per_step,
)
from ..timeline.transfers import host_to_device, idle_us_per_step, waits_in
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_INDEXING = ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_", "aten::_unsafe_index")
_MOVES = ("aten::to", "aten::_to_copy")
_NOTICEABLE_SHARE = 0.002


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that indexes."""
    trace = timeline.trace
    hosts = outermost(timeline, steady(timeline, trace.rows_named(_INDEXING)))
    if timeline.is_cpu_only or not len(hosts):
        return
    moves, owner = _moves_in(timeline, hosts)
    hosts = hosts[distinct(owner)]
    if not len(hosts):
        return
    inner = inside(timeline, moves, hosts)
    waits = waits_in(timeline, hosts)
    for occurrences in by_site(timeline, _occurrences(timeline, hosts, moves, inner, waits)):
        copied = np.sort(np.concatenate([occurrence.cost_rows for occurrence in occurrences]))
        held = np.sort(np.concatenate([occurrence.edit.unsynced for occurrence in occurrences]))
        idle_us = idle_us_per_step(timeline, held)
        if max(us_per_step(timeline, copied), idle_us) < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        yield Candidate(
            what="a device tensor is indexed with a tensor on the host, which is copied over first",
            remedy="an index on the device",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "indices",
                    "indices copied to the device per step, backward included",
                    count_per_step(timeline, copied),
                    "",
                    events_of(timeline, in_typical_step(timeline, copied)),
                ),
                Evidence("wait", "time the host waits for them", round(us_per_step(timeline, held) / 1000, 3), "ms"),
                Evidence("idle", "device idle after the waits", round(idle_us / 1000, 3), "ms"),
            ),
            probability=0.95,
        )


def _occurrences(
    timeline: Timeline, hosts: IntArray, moves: IntArray, inner: IntArray, waits: list[IntArray]
) -> Iterator[Occurrence]:
    """Indexing operators, each with those of its backward pass, which index with the same tensor."""
    forward = timeline.forward_op[hosts]
    groups: dict[int, list[int]] = {}
    for i, host in enumerate(hosts.tolist()):
        source = int(forward[i])
        groups.setdefault(host if source == NONE else outer_op(timeline, source), []).append(i)
    for anchor, members in groups.items():
        copied = moves[is_among(inner, members)]
        held = np.sort(np.concatenate([waits[i] for i in members]))
        yield Occurrence(anchor, Edit(removed_ops=copied, unsynced=held), copied)


def _moves_in(timeline: Timeline, hosts: IntArray) -> tuple[IntArray, IntArray]:
    """The operators inside indexing ones that copy to the device, and for each which of `hosts` it belongs to."""
    calls = timeline.launches.runtime[host_to_device(timeline)]
    calls = calls[calls != NONE].astype(np.int64)
    moves = outermost(timeline, steady(timeline, timeline.trace.rows_named(_MOVES)))
    moves = moves[inside(timeline, moves, hosts) != NONE]
    copying = inside(timeline, calls, moves)
    moves = moves[distinct(copying[copying != NONE])]
    return moves, inside(timeline, moves, hosts)


PATTERN = Pattern(
    code="TAP211",
    slug="host-tensor-index",
    title="Device tensor indexed from the host",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
)
