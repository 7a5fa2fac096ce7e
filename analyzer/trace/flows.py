"""Flow arrows and memory instants -> tables."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from .events import Event
from .interning import Interner, ThreadTable
from .model import NONE, FlowTable, IntArray, MemoryTable
from .scalars import to_integers
from .timestamps import INVALID, join_numbers, to_nanoseconds

REPEATED = frozenset({"ac2g", "async", "async_gpu", "async_cpu_to_gpu"})
"""Arrows from a launch to its kernel: they say again what `correlation` says, and are a third of some files."""
KINDS = {"cpu_to_cuda": "launch", "forward_backward": "fwdbwd"}
"""One name for what writers call by several; other categories keep theirs."""


class FlowBuilder:
    """Collects the two ends of flow arrows."""

    def __init__(self, threads: ThreadTable) -> None:
        self._threads = threads
        self._cats: Interner[str] = Interner()
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []
        self._times: list[bytes] = []

    def add(self, events: Sequence[Event], *, is_start: bool) -> None:
        """Append flow starts or flow ends, those that repeat others left out."""
        events = [event for event in events if event.cat not in REPEATED]
        if not events:
            return
        part = (
            self._cats.numbers([event.cat for event in events]),
            to_integers([event.id for event in events]),
            self._threads.numbers([(event.pid, event.tid) for event in events]),
            np.full(len(events), is_start, dtype=np.bool_),
        )
        self._parts.append(part)
        self._times.append(join_numbers([event.ts for event in events]))

    def finish(self) -> FlowTable:
        """The arrows with both ends, in order of their ends. Several ends may share one start."""
        cats = self._cats.values_by_number()
        kinds = tuple(dict.fromkeys(KINDS.get(cat, cat) for cat in cats))
        if not self._parts:
            none64, none32 = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
            return FlowTable(np.empty(0, dtype=np.int8), kinds, none64, none32, none64, none32)
        cat, flow_id, thread, is_start = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        kind = np.array([kinds.index(KINDS.get(cat, cat)) for cat in cats], dtype=np.int8)[cat]
        ts_ns = to_nanoseconds(b",".join(self._times))
        # In this order each end follows the start it belongs to, the latest of the same kind and id.
        order = np.lexsort((~is_start, ts_ns, flow_id, kind))
        kind, flow_id, is_start = kind[order], flow_id[order], is_start[order]
        ts_ns, thread = ts_ns[order], thread[order]
        start = np.maximum.accumulate(np.where(is_start, np.arange(len(order)), -1))
        paired = ~is_start & (start >= 0) & (kind == kind[start]) & (flow_id == flow_id[start])
        paired &= (ts_ns != INVALID) & (ts_ns[start] != INVALID)
        end = np.flatnonzero(paired)
        end = end[np.argsort(ts_ns[end], kind="stable")]
        start = start[end]
        return FlowTable(kind[end], kinds, ts_ns[start], thread[start], ts_ns[end], thread[end])


class MemoryBuilder:
    """Collects `[memory]` instants."""

    NAME = "[memory]"
    FIELDS = ("address", "memory_bytes", "device_type", "device_id", "total_allocated", "total_reserved")

    def __init__(self) -> None:
        self._parts: list[list[IntArray]] = []

    def add(self, events: Sequence[Event]) -> None:
        """Append memory instants."""
        if not events:
            return
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
        device = np.where(device_type == 0, NONE, device_id).astype(np.int32)
        return MemoryTable(ts_ns, address, size_bytes, device, allocated, reserved)
