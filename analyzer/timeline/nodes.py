"""The nodes of the replay graph: device events with what holds them up, and the places where the host meets them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..trace.model import NONE, BoolArray, Int8Array, Int32Array, IntArray, Trace
from .columns import median
from .handover import Handover
from .host_axis import HostAxis
from .model import NodeKind, Steps
from .streams import DeviceWork, previous_in_stream
from .waits import HostWait

_FALLBACK_LAUNCH_NS = 5_000
_FALLBACK_STREAM_NS = 1_000
_LONGEST_LAUNCH_NS = 20_000
"""No launch onto an idle stream takes longer than this; a copy's staging on the host may."""
_LONGEST_STREAM_NS = 5_000
"""No device needs longer than this from one queued event to the next."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Columns of nodes, shape (nodes,), as in `ReplayGraph`, and `key_ns`: the host time by which they are ordered."""

    kind: Int8Array
    row: Int32Array
    queue: Int32Array
    lane: Int32Array
    position: IntArray
    call: IntArray
    duration_ns: IntArray
    launch_ns: IntArray
    stream_ns: IntArray
    gap_ns: IntArray
    peer: IntArray
    step: Int32Array
    key_ns: IntArray

    def __len__(self) -> int:
        return len(self.kind)


def device_nodes(trace: Trace, axis: HostAxis, work: DeviceWork, waits: list[tuple[int, int]]) -> Nodes:
    """One node for each device event, in the order of `work`."""
    size = len(work.row)
    launched = work.call >= 0
    call_end = trace.end_ns[work.call]
    start = np.maximum(work.start_ns, axis.origin_ns)
    # A launch is over when its call returns; work that started before was launched when the call began.
    after_call = launched & (call_end <= start)
    moment = np.where(after_call, call_end, np.where(launched, trace.ts_ns[work.call], axis.origin_ns))
    previous = np.maximum(previous_in_stream(work), axis.origin_ns)
    is_free = np.ones(size, dtype=bool)
    is_free[[event for event, _ in waits]] = False
    launch_ns, stream_ns = _usual(launched, after_call, is_free, start - moment, start - previous, previous - moment)
    earliest = np.where(launched, np.maximum(moment + launch_ns, previous + stream_ns), previous + stream_ns)
    if waits:
        event, source = np.array(waits).T
        np.maximum.at(earliest, event, work.end_ns[source])
    lane = np.where(launched, axis.lane[trace.thread[work.call]], 0).astype(np.int32)
    position = lane.astype(np.int64) * axis.span_ns + np.clip(moment - axis.origin_ns, 0, axis.span_ns - 1)
    return Nodes(
        kind=np.full(size, NodeKind.DEVICE, dtype=np.int8),
        row=work.row.astype(np.int32),
        queue=work.stream,
        lane=lane,
        position=np.where(launched, position, NONE),
        call=np.where(launched, axis.row_start[work.call], NONE),
        duration_ns=work.end_ns - start,
        launch_ns=launch_ns,
        stream_ns=stream_ns,
        gap_ns=np.maximum(start - earliest, 0),
        peer=np.full(size, NONE, dtype=np.int64),
        step=work.step,
        key_ns=work.in_stream_order(moment),
    )


def _usual(
    launched: BoolArray,
    after_call: BoolArray,
    is_free: BoolArray,
    since_launch: IntArray,
    since_previous: IntArray,
    queued_ns: IntArray,
) -> tuple[IntArray, IntArray]:
    """Launch latency and the stream's own gap of each event: what is usual in the trace, or less.

    The usual launch latency is seen where the stream was idle at the launch, the usual gap where the event was queued,
    both where no other stream was waited for (`is_free`).
    """
    launch_ns = np.zeros(len(launched), dtype=np.int64)
    for kind in (launched & after_call, launched & ~after_call):
        seen = since_launch[kind & is_free & (queued_ns <= 0)]
        launch_ns[kind] = min(median(seen), _LONGEST_LAUNCH_NS) if len(seen) else _FALLBACK_LAUNCH_NS
    queued = is_free & (~launched | (queued_ns >= launch_ns)) & (since_previous < 10 * _LONGEST_STREAM_NS)
    seen = since_previous[queued]
    usual = int(np.clip(median(seen), 0, _LONGEST_STREAM_NS)) if len(seen) else _FALLBACK_STREAM_NS
    return np.minimum(launch_ns, since_launch), np.minimum(usual, since_previous)


def host_nodes(axis: HostAxis, steps: Steps, replayed: IntArray, waits: list[HostWait], handover: Handover) -> Nodes:
    """Waits of the host for the device (first, in the order given), handing over between threads, bounds of steps."""
    rows = np.array([wait.row for wait in waits], dtype=np.int64)
    joins = handover.joined
    return concatenate(
        _host_block(axis, NodeKind.WAIT, axis.row_start[rows], row=rows),
        _host_block(axis, NodeKind.ENTRY, handover.helper_start, peer=handover.main_start, launch_ns=handover.lead_ns),
        _host_block(axis, NodeKind.JOIN, handover.main_end[joins], peer=handover.helper_end[joins]),
        _host_block(axis, NodeKind.STEP_START, axis.at(0, steps.start_ns[replayed]), step=replayed),
        _host_block(axis, NodeKind.STEP_END, axis.at(0, steps.end_ns[replayed]), step=replayed),
    )


def concatenate(*parts: Nodes) -> Nodes:
    """All nodes of `parts`, one part after the other."""
    columns = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Nodes)}
    return Nodes(**columns)


def _host_block(
    axis: HostAxis,
    kind: NodeKind,
    position: IntArray,
    row: IntArray | None = None,
    peer: IntArray | None = None,
    step: IntArray | None = None,
    launch_ns: IntArray | None = None,
) -> Nodes:
    size = len(position)
    none, zero = np.full(size, NONE, dtype=np.int64), np.zeros(size, dtype=np.int64)
    lane = position // axis.span_ns
    started = position if kind is not NodeKind.ENTRY or peer is None else peer
    return Nodes(
        kind=np.full(size, kind, dtype=np.int8),
        row=(none if row is None else row).astype(np.int32),
        queue=lane.astype(np.int32),
        lane=lane.astype(np.int32),
        position=position,
        call=position,
        duration_ns=zero,
        launch_ns=zero if launch_ns is None else launch_ns,
        stream_ns=zero,
        gap_ns=zero,
        peer=none if peer is None else peer,
        step=(none if step is None else step).astype(np.int32),
        key_ns=axis.origin_ns + started % axis.span_ns,
    )
