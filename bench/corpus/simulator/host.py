"""The host's side: walks the recorded calls in order, gives each its time on a host with a device, and launches work."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import cycle
from math import exp

from msgspec import UNSET, UnsetType

from ..marks import PREFIX
from .calls import Mark, Node
from .device import Device, Memory
from .document import Args, Event
from .hardware import Hardware
from .kernels import Kernel, Plan, Queue, Work
from .operators import ALLOCATING, Planner
from .shapes import Call, Calls

_QUICK_US = 8.0
"""The interpreter and the dispatcher spend no more than this between two calls; the rest is somebody's work."""
_LONGEST_GAP_US = 400.0
"""Python code does no more between two calls; longer, and the machine was busy with something else."""
_LIBRARY_FRAMES = ("torch/", "nn.Module: ")
_ONLY_CALLING = (*_LIBRARY_FRAMES, "<built-in method")
"""Frames that do nothing that takes long, besides calling."""
_KEPT_IN_PLAN = frozenset(
    f"aten::{name}"
    for name in (
        *ALLOCATING,
        "as_strided",
        "view",
        "transpose",
        "t",
        "expand",
        "permute",
        "reshape",
        "unsqueeze",
        "squeeze",
    )
)
"""What a computing operator calls on any device. The rest is how the CPU does it, and is left out."""
_CLONE_THEIR_INPUT = frozenset(f"aten::{name}_" for name in ("silu", "hardswish", "hardtanh", "mish", "hardsigmoid"))
_NO_COMPUTE = _KEPT_IN_PLAN | frozenset(
    f"aten::{name}" for name in ("resolve_conj", "resolve_neg", "detach", "narrow", "slice")
)
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


class Host:
    """The clock of the host's threads, and all that they do. Times in µs.

    Main thread and backward thread share the clock: one waits while the other works.
    """

    def __init__(
        self,
        hardware: Hardware,
        planner: Planner,
        calls: Calls,
        device: Device,
        memory: Memory,
        events: list[Event],
        rng: random.Random,
        pace: Pace,
    ) -> None:
        self.hardware = hardware
        self.planner = planner
        self.calls = calls
        self.device = device
        self.memory = memory
        self.events = events
        self.rng = rng
        self.speed, self._python = pace.speed, pace.python
        self.clock = 0.0
        self.tid: int | str = 0
        self.pid: int | str = 0
        self.backward_tid: int | str = 0
        self.in_backward = False
        self.on_host = 0
        """How many ranges of host tensors are open."""
        self.external_id = 0
        self.starts: dict[float, tuple[float, int | str]] = {}
        """New time and thread of each operator with a sequence number, by its recorded start: flows move with them."""
        self.ranges: list[OpenRange] = []
        self.finished_ranges: list[OpenRange] = []
        self._open_ranges: dict[int, OpenRange] = {}
        self.renamed: dict[str, str] = {}
        self.allocations_left = 0
        """How many of the next allocations have to ask the driver."""
        self._correlation = rng.randrange(4000, 60000)
        self._new_id = 10_000_000
        self._jitter = cycle([exp(rng.gauss(0.0, 0.22)) for _ in range(_JITTERS)])
        self._steady = cycle([exp(rng.gauss(0.0, 0.025)) for _ in range(_JITTERS - 1)])
        self._launch_us = (6.0 if hardware.is_amd else 4.3) * self.speed
        self._prefix = "hip" if hardware.is_amd else "cuda"

    # Events

    def open(self, event: Event, name: str = "", call: Call | None = None) -> Event:
        """Write the start of a recorded event at the clock."""
        args = event.args
        if call is not None and not isinstance(args, UnsetType):
            args = _with_inputs(args, call)
        new = Event("X", name or event.name, event.cat, self.pid, self.tid, round(self.clock, 3), 0.0, args=args)
        self.events.append(new)
        return new

    def close(self, event: Event) -> None:
        """Write the end of an event at the clock."""
        assert not isinstance(event.ts, UnsetType)
        event.dur = max(0.0, round(self.clock - event.ts, 3))

    def synthetic(self, name: str, cat: str = "cpu_op", like: Args | UnsetType = UNSET) -> Event:
        """Open an event that was not recorded; with the inputs of `like`, if given."""
        self._new_id += 1
        args = Args(external_id=self._new_id, record_function=0)
        if not isinstance(like, UnsetType):
            args.dims, args.types, args.strides, args.concrete = like.dims, like.types, like.strides, like.concrete
        event = Event("X", name, cat, self.pid, self.tid, round(self.clock, 3), 0.0, args=args)
        self.events.append(event)
        return event

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

    def launch(self, kernel: Kernel, queue: Queue = Queue.COMPUTE, external_id: int = 0) -> tuple[float, float]:
        """Launch a kernel; answers when it starts and ends."""
        room = self.device.queue_has_room(self.clock)
        start = self.clock
        correlation = self.runtime(kernel.call, self._launch_us / self.speed, until=room)
        duration = kernel.duration_us * next(self._steady)
        self.events.append(Event("s", "ac2g", "ac2g", self.pid, self.tid, round(start, 3), id=correlation))
        identity = external_id or self.external_id
        began, ended = self.device.run(kernel, self.clock, duration, queue, correlation, identity)
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

    # Walking

    def visit(self, node: Node) -> None:
        """Replay one recorded event and all inside it."""
        cat = node.event.cat
        if cat == "python_function":
            self.python(node)
        elif cat == "cpu_op":
            self.operator(node)
        elif cat == "cpu_instant_event":
            self.instant(node)
        else:
            self.range_mark(node)

    def python(self, node: Node) -> None:
        """Replay a Python call."""
        self.plain(node)

    def range_mark(self, node: Node) -> None:
        """The beginning or the end of a range."""
        if node.mark is Mark.RANGE_BEGIN:
            one = OpenRange(self.open(node.event))
            self._open_ranges[id(node.event)] = one
            if not node.event.name.startswith(PREFIX):
                self.ranges.append(one)
        elif (one := self._open_ranges.pop(id(node.event), None)) is not None:
            self.close(one.event)
            if one in self.ranges:
                self.ranges.remove(one)
                self.finished_ranges.append(one)

    def plain(self, node: Node, name: str = "", call: Call | None = None, *, composite: bool = False) -> None:
        """Replay an event that takes what it took, as far as a host would; see `inside`."""
        event = self.open(node.event, name, call)
        self.inside(node, composite)
        self.close(event)

    def inside(self, node: Node, composite: bool = False) -> None:
        """Replay what lies inside an event, and the time between.

        Python goes at its own pace; a long stretch without events is somebody's work in C. An operator that only calls
        others (`composite`) spends little between them, however the CPU computed. PyTorch's own frames do no such work:
        there a long stretch is the recording machine being busy with something else.
        """
        quick, slow = (self.speed, 0.0) if composite else (self._python, self.speed)
        longest = _LONGEST_GAP_US if node.children else float("inf")
        if not self.on_host and node.event.name.startswith(_ONLY_CALLING if node.children else _LIBRARY_FRAMES):
            slow = 0.0
        last = node.begin
        for child in node.children:
            gap = child.begin - last
            if gap > 0:
                self.clock += gap * quick if gap < _QUICK_US else _QUICK_US * quick + min(gap, longest) * slow
            self.visit(child)
            last = child.end
        gap = node.end - last
        if gap > 0:
            self.clock += gap * quick if gap < _QUICK_US else _QUICK_US * quick + min(gap, longest) * slow

    def instant(self, node: Node) -> None:
        """Replay an allocation or a free."""
        args = node.event.args
        if isinstance(args, UnsetType) or not isinstance(args.memory_bytes, int):
            return
        factor = self.calls.bytes_factor(abs(args.memory_bytes))
        placed = self.memory.place(args, factor, bool(self.on_host))
        self.events.append(
            Event("i", "[memory]", "cpu_instant_event", self.pid, self.tid, round(self.clock, 3), s="t", args=placed)
        )

    def operator(self, node: Node) -> None:
        """Replay an operator."""
        recorded = node.event
        name, args = recorded.name, recorded.args
        assert not isinstance(args, UnsetType) and not isinstance(recorded.ts, UnsetType)
        if not isinstance(args.sequence, UnsetType):
            self.starts[recorded.ts] = round(self.clock, 3), self.tid
        call = self.calls.of(name, args)
        outer_id = self.external_id
        if not isinstance(args.external_id, UnsetType):
            self.external_id = args.external_id
        if self.on_host:
            self.plain(node, call=call)
        elif name.removeprefix("aten::").removesuffix("_") in ALLOCATING:
            self._allocation(node, call)
        elif (plan := self._plan(node, name, call)) is not None:
            self._computing(node, plan, call)
        else:
            self.plain(node, self.renamed.get(name, ""), call, composite=True)
        self.external_id = outer_id

    def _plan(self, node: Node, name: str, call: Call) -> Plan | None:
        if name.startswith(("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach")):
            return self._multi_tensor(node, name, call)
        children = [child.event.name for child in node.children if child.event.cat == "cpu_op"]
        return self.planner.plan(name, call, is_leaf=all(child in _NO_COMPUTE for child in children))

    def _multi_tensor(self, node: Node, name: str, call: Call) -> Plan | None:
        """The sizes come from the calls for each tensor that the CPU makes. Lists of host counters stay on the host."""
        if name.startswith("aten::_fused_"):
            return self.planner.fused_optimizer(name)
        lists = max(1, sum(kind == "TensorList" for kind in call.types))
        sizes, first = [], ""
        for child in node.children:
            if child.event.cat != "cpu_op" or isinstance(child.event.args, UnsetType):
                continue
            first = first or child.event.name
            if child.event.name == first:
                of_child = self.calls.of(first, child.event.args)
                sizes.append(_elements(of_child))
        if sizes and max(sizes) <= 1:
            return None
        passes = lists + (1 if lists > 1 or not name.endswith("_") else 2)
        return self.planner.multi_tensor(name, lists, sizes or [1], 4, passes)

    def _allocation(self, node: Node, call: Call) -> None:
        """A caching allocator's allocation."""
        event = self.open(node.event, call=call)
        self.spend(0.9)
        if self.allocations_left and any(child.event.cat == "cpu_instant_event" for child in node.children):
            self.allocations_left -= 1
            self.runtime(self.call_name("Malloc"), 140.0)
        for child in node.children:
            self.visit(child)
        self.spend(0.9)
        self.close(event)

    def _computing(self, node: Node, plan: Plan, call: Call) -> None:
        """An operator that computes: what any device calls inside it, then the launches."""
        args = node.event.args
        event = self.open(node.event, plan.rename, call)
        if plan.rename:
            self._rename_backward(node.event.name, plan.rename)
        self.spend(0.55 * plan.host_us)
        self._kept(node)
        self._launch_all(plan)
        for inner in plan.inner:
            outer_id = self.external_id
            inside = self.synthetic(inner.rename, like=args)
            assert not isinstance(inside.args, UnsetType) and isinstance(inside.args.external_id, int)
            self.external_id = inside.args.external_id
            self.spend(0.7 * inner.host_us)
            self._launch_all(inner)
            self.spend(0.3 * inner.host_us)
            self.close(inside)
            self.external_id = outer_id
        self.spend(0.45 * plan.host_us)
        self.close(event)

    def _kept(self, node: Node) -> None:
        """Replay allocations and views; of everything else only what it allocates and frees."""
        for child in node.children:
            cat = child.event.cat
            if cat == "cpu_instant_event":
                self.instant(child)
            elif cat == "cpu_op" and (child.event.name in _KEPT_IN_PLAN or _is_autograds_clone(child, node)):
                self.operator(child)
            else:
                self._memory_only(child)

    def _memory_only(self, node: Node) -> None:
        for child in node.children:
            if child.event.cat == "cpu_instant_event":
                self.instant(child)
            else:
                self._memory_only(child)

    def _launch_all(self, plan: Plan) -> None:
        for position, kernel in enumerate(plan.kernels):
            if position:
                self.pause()
            self.launch(kernel)
        if plan.waits:
            self.read_back(8)

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

    def _rename_backward(self, recorded: str, renamed: str) -> None:
        """Autograd's nodes are called after the operators: `NativeBatchNormBackward0`."""
        before, after = (_camel(name.removeprefix("aten::")) for name in (recorded, renamed))
        for prefix in ("", "autograd::engine::evaluate_function: "):
            self.renamed[f"{prefix}{before}Backward0"] = f"{prefix}{after}Backward0"


def _is_autograds_clone(node: Node, outer: Node) -> bool:
    """Whether an operator in place has its input kept by autograd before."""
    return node.event.name == "aten::clone" and outer.event.name in _CLONE_THEIR_INPUT


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


def _with_inputs(args: Args, call: Call) -> Args:
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


def _elements(call: Call) -> int:
    product = 1
    for size in call.shape(0):
        product *= size
    return product


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))
