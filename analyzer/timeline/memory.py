"""How much memory was in use when, from the profiler's `[memory]` instants (`profile_memory=True`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.model import NONE, IntArray
from .columns import distinct
from .model import Timeline


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Allocations and frees of one device (NONE: the host), in time order."""

    device: int
    ts_ns: IntArray
    change_bytes: IntArray
    allocated_bytes: IntArray
    """What is allocated after each; counted from the start of the recording where `is_absolute` is False."""
    is_absolute: bool

    def at(self, moments_ns: IntArray) -> IntArray:
        """What is allocated at each moment; 0 before the first record."""
        return self._last_before(np.append(0, self.allocated_bytes), moments_ns)

    def live_allocations_at(self, moments_ns: IntArray) -> IntArray:
        """How many more allocations than frees there were up to each moment."""
        return self._last_before(np.append(0, np.cumsum(np.sign(self.change_bytes))), moments_ns)

    def peak_bytes(self, start_ns: int, end_ns: int) -> int:
        """The most that is allocated at once in a stretch of time."""
        within = (self.ts_ns >= start_ns) & (self.ts_ns < end_ns)
        return int(self.allocated_bytes[within].max(initial=0))

    def _last_before(self, values: IntArray, moments_ns: IntArray) -> IntArray:
        return values[np.searchsorted(self.ts_ns, moments_ns, side="right")]


def memory_uses(timeline: Timeline) -> list[MemoryUse]:
    """One per device that the recording has records of, the host first."""
    memory = timeline.trace.memory
    found: list[MemoryUse] = []
    for device in distinct(memory.device).tolist():
        of_device = memory.device == device
        change, total = memory.size_bytes[of_device], memory.total_allocated_bytes[of_device]
        is_absolute = bool(np.all(total != NONE))
        allocated = total if is_absolute else np.cumsum(change)
        # On the host the count begins with the recording, whatever the profiler calls it.
        found.append(MemoryUse(device, memory.ts_ns[of_device], change, allocated, is_absolute and device != NONE))
    return found


def device_memory_bytes(timeline: Timeline, device: int) -> int:
    """The size of a device's memory; 0 if the trace does not say."""
    devices = timeline.trace.info.devices
    return next((one.total_memory_bytes for one in devices if one.index == device), 0)
