"""What programs do with a device, beyond operators: the backward thread, acts, host tensors, reduced gradients."""

from __future__ import annotations

from math import prod

from msgspec import UnsetType

from ..marks import ACT, ON_HOST, SPOILED
from .calls import Mark, Node
from .clock import ClockParts, with_inputs
from .collectives import collective
from .device import Memory
from .document import Args, Event
from .host import Host
from .kernels import Queue
from .operators import Planner
from .shapes import Call, Calls

_RUN_BACKWARD = "<built-in method run_backward"
_ENGINE = "autograd::engine::evaluate_function"
_LOADER = "enumerate(DataLoader)"
_OPTIMIZER_STEP = "Optimizer.step#"
_COPIES = frozenset(f"aten::{name}" for name in ("clone", "to", "_to_copy", "contiguous", "copy_"))
_FREED_SEGMENTS = 6
_WAKE_THREAD_US = 18.0


class Program(Host):
    """A host that knows what the marks and PyTorch's own ranges mean."""

    def __init__(self, planner: Planner, calls: Calls, memory: Memory, clock: ClockParts, ranks: int) -> None:
        """`ranks`: over how many devices collectives go."""
        super().__init__(planner, calls, memory, clock)
        self._ranks = ranks
        self._exchanging: list[float] = []
        """When collectives end that nobody has waited for yet."""
        self._backward_python: set[object] = set()
        self._in_optimizer = 0
        self._act: Act | None = None

    def python(self, node: Node) -> None:
        """Replay a Python call; the engine's runs on a thread of its own while the main thread waits.

        What spoils the call spoils that thread's work.
        """
        if not node.event.name.startswith(_RUN_BACKWARD) or self.in_backward:
            self.plain(node)
            return
        event = self.open(node.event)
        main = self._enter_backward()
        ranges = [self.open(one.event) for one in self.open_ranges() if one.event.name.startswith(SPOILED)]
        self.inside(node)
        for one in ranges:
            self.close(one)
        self._leave_backward(main)
        self.close(event)

    def open(self, event: Event, name: str = "", call: Call | None = None) -> Event:
        """Write an event; Python calls on the backward thread have no parent on the main one."""
        new = super().open(event, name, call)
        if self.in_backward and event.cat == "python_function" and not isinstance(event.args, UnsetType):
            own = self._backward_python
            if event.args.python_parent not in own:
                args = event.args
                new.args = Args(python_parent=None, python_id=args.python_id, python_module=args.python_module)
            own.add(event.args.python_id)
        return new

    def range_mark(self, node: Node) -> None:
        """Ranges say where tensors of the host are worked on, and what is done with the device."""
        super().range_mark(node)
        name, begins = node.event.name, node.mark is Mark.RANGE_BEGIN
        if name == ON_HOST or name.startswith(_LOADER):
            self.on_host += 1 if begins else -1
        elif name.startswith(_OPTIMIZER_STEP):
            self._in_optimizer += 1 if begins else -1
            self._await_exchanges()
        elif name.startswith(ACT):
            self._act = None
            if begins:
                self._act = Act(name.removeprefix(ACT))
                self._begin_act(self._act)

    def operator(self, node: Node) -> None:
        """Replay an operator, by what the ranges round it say."""
        name = node.event.name
        if self.on_host:
            super().operator(node)
        elif self._act is not None and self._in_act(node, self._act):
            return
        elif name == "aten::_local_scalar_dense" and not self._in_optimizer:
            self._read_scalar(node)
        elif self._in_optimizer and self._is_counter(node):
            self._among_host_tensors(node)
        elif name.startswith(_ENGINE) and not self.in_backward:
            main = self._enter_backward()
            super().operator(node)
            self._leave_backward(main)
        else:
            super().operator(node)

    # The backward thread

    def _enter_backward(self) -> int | str:
        main = self.tid
        self.tid = self.backward_tid
        self.in_backward = True
        self.spend(_WAKE_THREAD_US)
        return main

    def _leave_backward(self, main: int | str) -> None:
        self._await_exchanges()
        self.in_backward = False
        self.spend(_WAKE_THREAD_US / 2)
        self.tid = main

    def _await_exchanges(self) -> None:
        """The compute stream goes on when the collectives beside it are done."""
        for end in self._exchanging:
            self.runtime(self.call_name("StreamWaitEvent"), 0.9)
            self.device.hold(Queue.COMPUTE, end)
        self._exchanging = []

    # Host tensors

    def _is_counter(self, node: Node) -> bool:
        """Optimizers count steps in tensors without dimensions, and keep them on the host."""
        args = node.event.args
        assert not isinstance(args, UnsetType)
        call = self.calls.of(node.event.name, args)
        return bool(call.dims) and not any(call.dims) and not any(call.lists) and "TensorList" not in call.types

    def _among_host_tensors(self, node: Node) -> None:
        self.on_host += 1
        super().operator(node)
        self.on_host -= 1

    def _read_scalar(self, node: Node) -> None:
        """`item()`: four bytes to the host, which waits for all that was launched before."""
        outer_id = self.external_id
        event = self.open(node.event)
        if isinstance(node.event.args, Args) and isinstance(node.event.args.external_id, int):
            self.external_id = node.event.args.external_id
        self.spend(2.5)
        self.read_back(4)
        self.spend(1.0)
        self.close(event)
        self.external_id = outer_id

    # Acts

    def _begin_act(self, act: Act) -> None:
        if act.name == "synchronize":
            self.wait(self.device.all_done(), "DeviceSynchronize")
        elif act.name == "empty_cache":
            self.wait(self.device.all_done(), "DeviceSynchronize")
            for _ in range(_FREED_SEGMENTS):
                self.runtime(self.call_name("Free"), 90.0)
                self.pause()
            self.memory.release_cache()
            self.allocations_left = _FREED_SEGMENTS
        elif act.name in ("allreduce", "broadcast"):
            self._exchanging.append(collective(self, act.name, act.value("bytes"), self._ranks))
            if not act.is_set("async"):
                self._await_exchanges()

    def _in_act(self, node: Node, act: Act) -> bool:
        """Replay an operator inside an act, if the act changes it."""
        if act.name in ("htod", "dtoh") and node.event.name in _COPIES:
            self._transfer(node, act)
            return True
        if act.name == "fallback" and node.event.name.startswith("aten::"):
            self._fallback(node)
            return True
        return False

    def _transfer(self, node: Node, act: Act) -> None:
        """`to` as a device runs it. The host waits unless the memory is pinned and nobody asked it to block."""
        recorded = node.event.args
        assert not isinstance(recorded, UnsetType)
        call = self.calls.of(node.event.name, recorded)
        into = act.name == "htod"
        pinned = act.is_set("pinned", default=not into)
        size = prod(call.shape(0)) * call.element_bytes(0)
        like = with_inputs(Args(), call)
        opened = [self.synthetic("aten::to", like=like)]
        self.spend(1.5)
        opened.append(self.synthetic("aten::_to_copy", like=like))
        self.spend(1.5)
        allocation = self.synthetic("aten::empty_strided")
        self.spend(2.0)
        self._memory_only(node)
        self.close(allocation)
        opened.append(self.synthetic("aten::copy_", like=like))
        outer_id = self.external_id
        last = opened[-1].args
        assert isinstance(last, Args) and isinstance(last.external_id, int)
        self.external_id = last.external_id
        self.spend(2.5)
        kernel = self.copy_kernel("HtoD" if into else "DtoH", size, pinned)
        _, end = self.launch(kernel)
        if act.is_set("blocking", default=not into) or not pinned:
            self.wait(end)
        for event in reversed(opened):
            self.spend(0.6)
            self.close(event)
        self.external_id = outer_id

    def _fallback(self, node: Node) -> None:
        """An operator that the device lacks: inputs to the host, the CPU's kernel, the result back."""
        args = node.event.args
        assert not isinstance(args, UnsetType)
        call = self.calls.of(node.event.name, args)
        size = sum(prod(call.shape(k)) * call.element_bytes(k) for k in range(len(call.dims)) if call.shape(k))
        event = self.open(node.event, call=call)
        self.launch(self.copy_kernel("DtoH", size, pinned=False))
        self.wait(self.device.free_at(Queue.COMPUTE))
        self.on_host += 1
        self.inside(node)
        self.on_host -= 1
        _, end = self.launch(self.copy_kernel("HtoD", size, pinned=False))
        self.wait(end)
        self.close(event)


class Act:
    """A `corpus.act`: its name and details."""

    __slots__ = ("_details", "name")

    def __init__(self, text: str) -> None:
        self.name, *details = text.split()
        self._details = dict(word.split("=", 1) for word in details)

    def value(self, key: str) -> int:
        """A detail's number; 0 if it isn't given."""
        return int(self._details.get(key, 0))

    def is_set(self, key: str, default: bool = False) -> bool:
        """Whether a detail is 1."""
        return self._details.get(key, str(int(default))) == "1"
