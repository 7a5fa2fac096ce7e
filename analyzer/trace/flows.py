"""Flow arrows and memory instants -> tables."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from .events import Event
from .interning import Interner, ThreadTable
from .model import NONE, FlowTable, Int32Array, IntArray, MemoryTable
from .scalars import to_integers
from .timestamps import INVALID, join_numbers, to_nanoseconds

LAUNCH = "launch"
KINDS = {
    "ac2g": LAUNCH,
    "async": LAUNCH,
    "async_gpu": LAUNCH,
    "async_cpu_to_gpu": LAUNCH,
    "cpu_to_cuda": LAUNCH,
    "forward_backward": "fwdbwd",
}
"""One name for what writers call by several; other categories keep theirs."""
START = "s"
END = "f"


class FlowBuilder:
    """Collects the two ends of flow arrows."""

    def __init__(self, threads: ThreadTable) -> None:
        self._threads = threads
        self._kinds: Interner[str] = Interner()
        self._parts: list[tuple[IntArray, ...]] = []
        self._times: list[bytes] = []

    def add(self, events: Sequence[Event]) -> None:
        """Append flow starts and ends."""
        part = (
            self._kinds.numbers([KINDS.get(event.cat, event.cat) for event in events]).astype(np.int64),
            to_integers([event.id for event in events]),
            self._threads.numbers([(event.pid, event.tid) for event in events]).astype(np.int64),
            np.array([event.ph == START for event in events], dtype=np.int64),
        )
        self._parts.append(part)
        self._times.append(join_numbers([event.ts for event in events]))

    def finish(self) -> FlowTable:
        """The arrows with both ends, in order of their ends. Several ends may share one start, as in a graph launch."""
        kinds = self._kinds.values_by_number()
        if not self._parts:
            none64, none32 = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
            return FlowTable(np.empty(0, dtype=np.int8), kinds, none64, none32, none64, none32)
        kind, flow_id, thread, is_start = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        ts_ns = to_nanoseconds(b",".join(self._times))
        # In this order each end follows the start it belongs to, the latest of the same kind and id.
        order = np.lexsort((1 - is_start, ts_ns, flow_id, kind))
        kind, flow_id, ts_ns, thread, is_start = (column[order] for column in (kind, flow_id, ts_ns, thread, is_start))
        rows = np.arange(len(order))
        start = np.maximum.accumulate(np.where(is_start == 1, rows, -1))
        paired = (is_start == 0) & (start >= 0)
        paired &= (kind == kind[start]) & (flow_id == flow_id[start]) & (ts_ns != INVALID) & (ts_ns[start] != INVALID)
        end = np.flatnonzero(paired)
        end = end[np.argsort(ts_ns[end], kind="stable")]
        return FlowTable(
            kind[end].astype(np.int8),
            kinds,
            ts_ns[start[end]],
            thread[start[end]].astype(np.int32),
            ts_ns[end],
            thread[end].astype(np.int32),
        )


class MemoryBuilder:
    """Collects `[memory]` instants."""

    NAME = "[memory]"
    FIELDS = ("address", "memory_bytes", "device_type", "device_id", "total_allocated", "total_reserved")

    def __init__(self) -> None:
        self._parts: list[list[IntArray]] = []

    def add(self, events: Sequence[Event]) -> None:
        """Append memory instants."""
        args = [event.args for event in events]
        columns = [to_integers(list(map(attrgetter(field), args))) for field in self.FIELDS]
        self._parts.append([to_nanoseconds(join_numbers([event.ts for event in events])), *columns])

    def finish(self) -> MemoryTable:
        """The instants in order of time."""
        if self._parts:
            columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        else:
            columns = [np.empty(0, dtype=np.int64)] * (len(self.FIELDS) + 1)
        order = np.argsort(columns[0], kind="stable")
        order = order[columns[0][order] != INVALID]
        ts_ns, address, size_bytes, device_type, device_id, allocated, reserved = (column[order] for column in columns)
        device: Int32Array = np.where(device_type == 0, NONE, device_id).astype(np.int32)
        return MemoryTable(ts_ns, address, size_bytes, device, allocated, reserved)
