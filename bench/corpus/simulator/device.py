"""The device's side: streams that run what they are given in order, a bounded launch queue, and memory."""

from __future__ import annotations

from collections import deque

from msgspec import UNSET

from .document import Args, Event
from .hardware import Hardware
from .kernels import Kernel, Queue, Work

_QUEUE_LENGTH = 1022
"""Launches that the driver takes before it holds the host up."""
_OF_COLLECTIVES = ("collective", "elements_in", "elements_out", "group_size", "group_name", "dtype")
_SEGMENT_BYTES = 20 << 20


class Device:
    """Runs kernels and writes their events. Times in µs."""

    def __init__(self, hardware: Hardware, events: list[Event]) -> None:
        self._hardware = hardware
        self._events = events
        self.pid = 2 if hardware.is_amd else 0
        self._stream_of = (
            {Queue.COMPUTE: 0, Queue.COMMUNICATION: 4}
            if hardware.is_amd
            else {
                Queue.COMPUTE: 7,
                Queue.COMMUNICATION: 20,
            }
        )
        self._free = dict.fromkeys(Queue, 0.0)
        self._pending: deque[float] = deque()
        self._gap_us = 1.0 if hardware.is_amd else 0.85
        self._latency_us = 4.5 if hardware.is_amd else 2.2

    @property
    def streams(self) -> list[int]:
        """Streams that have had work."""
        return [self._stream_of[queue] for queue, end in self._free.items() if end]

    def free_at(self, queue: Queue) -> float:
        """When a stream has done all that it was given."""
        return self._free[queue]

    def all_done(self) -> float:
        """When all streams have."""
        return max(self._free.values())

    def hold(self, queue: Queue, until: float) -> None:
        """A stream goes on no sooner than then (`cudaStreamWaitEvent`)."""
        self._free[queue] = max(self._free[queue], until)

    def queue_has_room(self, now: float) -> float:
        """When the next launch can be taken."""
        pending = self._pending
        while pending and pending[0] <= now:
            pending.popleft()
        return pending[len(pending) - _QUEUE_LENGTH] if len(pending) >= _QUEUE_LENGTH else now

    def run(
        self,
        kernel: Kernel,
        launched: float,
        duration: float,
        queue: Queue,
        correlation: int,
        external_id: int,
        described: Args | None,
    ) -> tuple[float, float]:
        """Give a stream a kernel that the host launched at a moment; answers its start and end."""
        ready = launched + self._latency_us
        free = self._free[queue]
        start = round(ready if ready > free + self._gap_us else free + self._gap_us, 3)
        duration = round(duration, 3)
        end = self._free[queue] = start + duration
        if queue is Queue.COMPUTE:
            self._pending.append(end)
        stream = self._stream_of[queue]
        args = self._args(kernel, duration, stream, correlation, external_id)
        if described is not None:
            for field in _OF_COLLECTIVES:
                setattr(args, field, getattr(described, field))
        self._events.append(
            Event(
                "X",
                kernel.name,
                kernel.work.value,
                self.pid,
                stream,
                start,
                duration,
                args=args,
            )
        )
        self._events.append(Event("f", "ac2g", "ac2g", self.pid, stream, start, id=correlation, bp="e"))
        return start, end

    def _args(self, kernel: Kernel, duration: float, stream: int, correlation: int, external_id: int) -> Args:
        if kernel.work is not Work.KERNEL:
            return Args(
                external_id=external_id,
                device=self.pid,
                context=UNSET if self._hardware.is_amd else 1,
                stream=stream,
                correlation=correlation,
                bytes=kernel.bytes,
                bandwidth=round(kernel.bytes / max(duration, 0.001) / 1e3, 3),
            )
        if self._hardware.is_amd:
            return Args(
                external_id=external_id,
                device=self.pid,
                stream=stream,
                correlation=correlation,
                kind="Dispatch Kernel",
                grid=kernel.grid,
                block=kernel.block,
            )
        blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
        units = self._hardware.units
        warps = (kernel.block[0] + 31) // 32
        return Args(
            external_id=external_id,
            queued=0,
            device=0,
            context=1,
            stream=stream,
            correlation=correlation,
            registers=kernel.registers,
            shared_memory=kernel.shared_bytes,
            blocks_per_sm=round(blocks / units, 6),
            warps_per_sm=round(blocks * warps / units, 6),
            grid=kernel.grid,
            block=kernel.block,
            occupancy=self._occupancy(kernel, blocks),
        )

    def _occupancy(self, kernel: Kernel, blocks: int) -> int:
        """The share of resident threads, in per cent, by blocks, registers and shared memory."""
        hardware, threads = self._hardware, kernel.block[0]
        fit = hardware.threads // threads
        fit = min(fit, 65536 // max(1, kernel.registers * threads))
        if kernel.shared_bytes:
            fit = min(fit, max(1, hardware.shared_bytes // kernel.shared_bytes))
        resident = min(max(1, fit), blocks / hardware.units)
        return min(100, round(100 * resident * threads / hardware.threads))


class Memory:
    """The caching allocator's counts, and where each address lives."""

    def __init__(self, hardware: Hardware, in_use_bytes: int) -> None:
        self.device_type = 6 if hardware.is_amd else 1
        self._in_use = in_use_bytes
        self._reserved = in_use_bytes + _SEGMENT_BYTES
        self._host_in_use = 0
        self._on_host: set[int] = set()

    def place(self, args: Args, factor: int, on_host: bool) -> Args:
        """The record of an allocation or free: on the device, unless it was made among host tensors."""
        size, address = args.memory_bytes, args.address
        assert isinstance(size, int) and isinstance(address, int)
        if on_host and size > 0:
            self._on_host.add(address)
        if address in self._on_host:
            if size < 0:
                self._on_host.discard(address)
            self._host_in_use += size
            return Args(
                total_reserved=0,
                total_allocated=max(self._host_in_use, 0),
                memory_bytes=size,
                address=address,
                device_id=-1,
                device_type=0,
            )
        rounded = -(-abs(size) * factor // 512) * 512
        self._in_use = max(0, self._in_use + (rounded if size > 0 else -rounded))
        while self._reserved < self._in_use:
            self._reserved += _SEGMENT_BYTES
        return Args(
            total_reserved=self._reserved,
            total_allocated=self._in_use,
            memory_bytes=rounded if size > 0 else -rounded,
            address=address,
            device_id=0,
            device_type=self.device_type,
        )

    def release_cache(self) -> None:
        """What is reserved and not in use goes back to the driver."""
        self._reserved = self._in_use
