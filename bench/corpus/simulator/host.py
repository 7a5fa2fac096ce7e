"""The host's walk through recorded calls: their times where a device computes, and what each launches."""

from __future__ import annotations

from math import prod

from msgspec import UnsetType

from ..marks import PREFIX
from .calls import Mark, Node
from .clock import Clock, ClockParts, OpenRange
from .device import Memory
from .document import Event
from .kernels import Plan
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
        "nonzero",
    )
)
"""What a computing operator calls on any device. The rest is how the CPU does it, and is left out."""
_CLONE_THEIR_INPUT = frozenset(f"aten::{name}_" for name in ("silu", "hardswish", "hardtanh", "mish", "hardsigmoid"))
_NO_COMPUTE = _KEPT_IN_PLAN - {"aten::nonzero"} | frozenset(
    f"aten::{name}" for name in ("resolve_conj", "resolve_neg", "detach", "narrow", "slice")
)


class Host(Clock):
    """Walks a recording: each call has its time on a host with a device, and launches its work."""

    def __init__(self, planner: Planner, calls: Calls, memory: Memory, clock: ClockParts) -> None:
        super().__init__(clock)
        self.planner = planner
        self.calls = calls
        self.memory = memory
        self.backward_tid: int | str = 0
        self.in_backward = False
        self.on_host = 0
        """How many ranges of host tensors are open."""
        self.starts: dict[float, tuple[float, int | str]] = {}
        """New time and thread of each operator with a sequence number, by its recorded start: flows move with them."""
        self.finished_ranges: list[OpenRange] = []
        self._open_ranges: dict[int, OpenRange] = {}
        self._renamed: dict[str, str] = {}
        self.allocations_left = 0
        """How many of the next allocations have to ask the driver."""

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

    def open_ranges(self) -> list[OpenRange]:
        """Ranges that have begun and not ended, the corpus's own among them."""
        return list(self._open_ranges.values())

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
        quick, slow = (self.speed, 0.0) if composite else (self.python_pace, self.speed)
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
            self.plain(node, self._renamed.get(name, ""), call, composite=True)
        self.external_id = outer_id

    def _plan(self, node: Node, name: str, call: Call) -> Plan | None:
        if name.startswith(("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach")):
            return self._multi_tensor(node, name, call)
        children = [child.event.name for child in node.children if child.event.cat == "cpu_op"]
        return self.planner.plan(name, call, is_leaf=all(child in _NO_COMPUTE for child in children))

    def _multi_tensor(self, node: Node, name: str, call: Call) -> Plan | None:
        """The sizes come from the calls for each tensor that the CPU makes. Lists of host counters stay on the host."""
        if name.startswith("aten::_fused_"):
            return self.planner.many.fused_optimizer(name)
        lists = max(1, sum(kind == "TensorList" for kind in call.types))
        sizes, first = [], ""
        for child in node.children:
            if child.event.cat != "cpu_op" or isinstance(child.event.args, UnsetType):
                continue
            first = first or child.event.name
            if child.event.name == first:
                of_child = self.calls.of(first, child.event.args)
                sizes.append(prod(of_child.shape(0)))
        if sizes and max(sizes) <= 1:
            return None
        passes = lists + (1 if lists > 1 or not name.endswith("_") else 2)
        return self.planner.many.plan(name, lists, sizes or [1], 4, passes)

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

    def _rename_backward(self, recorded: str, renamed: str) -> None:
        """Autograd's nodes are called after the operators: `NativeBatchNormBackward0`."""
        before, after = (_camel(name.removeprefix("aten::")) for name in (recorded, renamed))
        for prefix in ("", "autograd::engine::evaluate_function: "):
            self._renamed[f"{prefix}{before}Backward0"] = f"{prefix}{after}Backward0"


def _is_autograds_clone(node: Node, outer: Node) -> bool:
    """Whether an operator in place has its input kept by autograd before."""
    return node.event.name == "aten::clone" and outer.event.name in _CLONE_THEIR_INPUT


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))
