"""The host's clock and what it writes: host events, runtime calls, launches, waits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import cycle
from math import exp

from msgspec import UNSET, UnsetType

from .device import Device
from .document import Args, Event
from .hardware import Hardware
from .kernels import Kernel, Queue, Work
from .shapes import Call

_WAKE_US = 2.5
"""From the end of what the host waited for to its going on."""
_JITTERS = 8192


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a host is."""

    speed: float = 1.0
    """Time for operators and calls, of what a usual host takes."""
    python: float = 1.0
    """Time for Python, of what it took when recorded."""

    @staticmethod
    def draw(rng: random.Random) -> Pace:
        """Some host. Recording stacks slows Python down, and many profiles are taken without."""
        speed = exp(rng.gauss(0.0, 0.2))
        return Pace(speed, speed * exp(rng.gauss(-0.85, 0.3)))


@dataclass(frozen=True, slots=True)
class ClockParts:
    """What a clock works with."""

    hardware: Hardware
    device: Device
    events: list[Event]
    """All that is written."""
    rng: random.Random
    pace: Pace


class OpenRange:
    """An open annotation, and the device time that was launched inside it."""

    __slots__ = ("begin", "end", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.begin = float("inf")
        self.end = 0.0

    def include(self, begin: float, end: float) -> None:
        """Device work ran from then to then."""
        if begin < self.begin:
            self.begin = begin
        if end > self.end:
            self.end = end


class Clock:
    """The time of the host's threads. Times in µs.

    Main thread and backward thread share the clock: one waits while the other works.
    """

    def __init__(self, parts: ClockParts) -> None:
        self.hardware = parts.hardware
        self.device = parts.device
        self.events = parts.events
        self.rng = rng = parts.rng
        self.speed, self.python_pace = parts.pace.speed, parts.pace.python
        self.clock = 0.0
        self.tid: int | str = 0
        self.pid: int | str = 0
        self.external_id = 0
        """Of the innermost operator."""
        self.ranges: list[OpenRange] = []
        """Open annotations."""
        self._correlation = rng.randrange(4000, 60000)
        self._new_id = 10_000_000
        self._jitter = cycle([exp(rng.gauss(0.0, 0.22)) for _ in range(_JITTERS)])
        self._steady = cycle([exp(rng.gauss(0.0, 0.025)) for _ in range(_JITTERS - 1)])
        self._launch_us = 6.0 if self.hardware.is_amd else 4.3
        self._prefix = "hip" if self.hardware.is_amd else "cuda"

    def open(self, event: Event, name: str = "", call: Call | None = None) -> Event:
        """Write the start of a recorded event at the clock."""
        args = event.args
        if call is not None and not isinstance(args, UnsetType):
            args = with_inputs(args, call)
        new = Event("X", name or event.name, event.cat, self.pid, self.tid, round(self.clock, 3), 0.0, args=args)
        self.events.append(new)
        return new

    def close(self, event: Event) -> None:
        """Write the end of an event at the clock."""
        assert not isinstance(event.ts, UnsetType)
        event.dur = max(0.0, round(self.clock - event.ts, 3))

    def synthetic(self, name: str, cat: str = "cpu_op", like: Args | UnsetType = UNSET) -> Event:
        """Open an event that was not recorded; with the inputs of `like`, if given."""
        args = Args(external_id=self.new_id(), record_function=0)
        if not isinstance(like, UnsetType):
            args.dims, args.types, args.strides, args.concrete = like.dims, like.types, like.strides, like.concrete
        event = Event("X", name, cat, self.pid, self.tid, round(self.clock, 3), 0.0, args=args)
        self.events.append(event)
        return event

    def new_id(self) -> int:
        """An external id for what was not recorded."""
        self._new_id += 1
        return self._new_id

    def spend(self, microseconds: float) -> None:
        """Host work of about so long."""
        self.clock += microseconds * self.speed * next(self._jitter)

    def runtime(self, name: str, microseconds: float, until: float = 0.0) -> int:
        """A runtime call that takes so long, and no less than until a moment; answers its correlation."""
        self._correlation += 1
        start = round(self.clock, 3)
        self.clock += microseconds * self.speed * next(self._jitter)
        if until > self.clock:
            self.clock = until
        args = Args(external_id=self.external_id or UNSET, correlation=self._correlation)
        if self.hardware.is_amd:
            args.cid = 107
        else:
            args.cbid = 211
        cat = "cuda_driver" if name.startswith("cuL") else "cuda_runtime"
        self.events.append(Event("X", name, cat, self.pid, self.tid, start, round(self.clock - start, 3), args=args))
        return self._correlation

    def call_name(self, name: str) -> str:
        """A runtime call's name on the device's vendor: `StreamSynchronize`."""
        return self._prefix + name

    def launch(
        self, kernel: Kernel, queue: Queue = Queue.COMPUTE, external_id: int = 0, described: Args | None = None
    ) -> tuple[float, float]:
        """Launch a kernel; answers when it starts and ends. `described`: the collective that it does."""
        room = self.device.queue_has_room(self.clock)
        start = self.clock
        correlation = self.runtime(kernel.call, self._launch_us, until=room)
        duration = kernel.duration_us * next(self._steady)
        self.events.append(Event("s", "ac2g", "ac2g", self.pid, self.tid, round(start, 3), id=correlation))
        identity = external_id or self.external_id
        began, ended = self.device.run(kernel, self.clock, duration, queue, correlation, identity, described)
        if queue is Queue.COMPUTE:
            for one in self.ranges:
                one.include(began, ended)
        return began, ended

    def wait(self, until: float, call: str = "StreamSynchronize") -> None:
        """The host stands still until then."""
        self.runtime(self.call_name(call), 1.5, until=until + _WAKE_US)

    def pause(self) -> None:
        """Host time between two launches."""
        self.spend(1.2)

    def read_back(self, size_bytes: int) -> None:
        """Copy a little to the host and wait for it."""
        self.launch(self.copy_kernel("DtoH", size_bytes, pinned=False))
        self.wait(self.device.free_at(Queue.COMPUTE))

    def copy_kernel(self, direction: str, size_bytes: int, pinned: bool) -> Kernel:
        """A copy between host and device."""
        place = "Pinned" if pinned else "Pageable"
        ends = f"{place} -> Device" if direction == "HtoD" else f"Device -> {place}"
        if self.hardware.is_amd:
            ends = "Host -> Device" if direction == "HtoD" else "Device -> Host"
        rate = self.hardware.host_gb_per_s * 1e3 * (0.92 if pinned else 0.3)
        duration = 1.3 + size_bytes / rate
        call = "hipMemcpyWithStream" if self.hardware.is_amd else "cudaMemcpyAsync"
        return Kernel(f"Memcpy {direction} ({ends})", duration, work=Work.MEMCPY, call=call, bytes=size_bytes)


def with_inputs(args: Args, call: Call) -> Args:
    """The arguments with a call's multiplied sizes."""
    return Args(
        external_id=args.external_id,
        record_function=args.record_function,
        sequence=args.sequence,
        forward_thread=args.forward_thread,
        concrete=call.written_concrete,
        types=call.written_types,
        strides=call.written_strides,
        dims=call.written_dims,
        event_index=args.event_index,
    )
