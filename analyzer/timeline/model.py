"""What a trace means, as values. `build_timeline` in `build.py` makes them; every rule reads them.

Row numbers are rows of `trace`. "Device work" is a kernel, memcpy or memset; in a CPU-only trace the host
operators are the compute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from ..trace.model import NONE, BoolArray, FloatArray, Int8Array, Int32Array, IntArray, Trace
from .memo import Memo

if TYPE_CHECKING:
    from .job import Job


class StepSource(IntEnum):
    """Where the step boundaries come from, best first."""

    PROFILER = 0
    """`ProfilerStep#N` annotations."""
    OPTIMIZER = 1
    """Ends of `Optimizer.step` annotations."""
    PERIOD = 2
    """The longest repeating sequence of kernels (or of host operators)."""
    WHOLE = 3
    """Nothing repeats: the recording counts as one step."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps, in time order. Arrays have shape (steps,) unless said otherwise."""

    source: StepSource
    start_ns: IntArray
    end_ns: IntArray
    number: IntArray
    """The N of `ProfilerStep#N`; else 0, 1, 2, ..."""
    is_warmup: BoolArray
    """Steps left out of every figure: cold start, compilation, autotuning."""
    of: Int32Array
    """Shape (n,): the step of each event, device work counted where it was *launched*; NONE outside all steps."""
    is_cold: bool = False
    """There is one step and it starts things up (libraries, autotuning, compilation): its host time and its idle
    time say nothing about steady running, and no finding may be built on them."""

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def steady(self) -> IntArray:
        """Indices of the steps that figures are taken over."""
        return np.flatnonzero(~self.is_warmup)

    @property
    def duration_ns(self) -> IntArray:
        """Host span of each step."""
        return self.end_ns - self.start_ns

    def are_steady(self, rows: IntArray) -> BoolArray:
        """For each of `rows` (events), whether it belongs to a steady step."""
        return np.append(~self.is_warmup, False)[self.of[rows]]


@dataclass(frozen=True, slots=True)
class CallTree:
    """Per-thread nesting of host events by containment, tolerant of rounding. Arrays have shape (n,)."""

    parent: Int32Array
    """Innermost enclosing host event on the same thread; NONE for roots and for device events."""
    op: Int32Array
    """Innermost operator (CPU_OP) that encloses the row or is it; NONE if none."""
    python: Int32Array
    """Innermost PYTHON_FUNCTION that encloses the row or is it; NONE if none."""
    annotation: Int32Array
    """Innermost USER_ANNOTATION, other than a step's, that encloses the row or is it; NONE if none."""
    self_ns: IntArray
    """Duration less the time of direct children; 0 for device events."""
    child_start: Int32Array
    """Shape (n + 1,): children of row r are `child_rows[child_start[r]:child_start[r + 1]]`, in time order."""
    child_rows: Int32Array

    def children(self, row: int) -> Int32Array:
        """Direct children of `row`, in time order."""
        return self.child_rows[self.child_start[row] : self.child_start[row + 1]]

    def ancestors(self, row: int) -> list[int]:
        """Enclosing host events of `row`, innermost first, `row` left out."""
        found = []
        current = int(self.parent[row])
        while current != NONE:
            found.append(current)
            current = int(self.parent[current])
        return found


@dataclass(frozen=True, slots=True)
class Launches:
    """Which host call caused which device work. Arrays have shape (n,)."""

    runtime: Int32Array
    """For a device row: the RUNTIME row that launched it; NONE if there is no record of it."""
    op: Int32Array
    """For a device row: the innermost operator that launched it (host row); for a host row: `tree.op`."""
    device_start: Int32Array
    """Shape (n + 1,): device rows launched by runtime row r are `device_rows[device_start[r]:device_start[r + 1]]`."""
    device_rows: Int32Array

    def devices_of(self, runtime_row: int) -> Int32Array:
        """Device rows launched by one RUNTIME row."""
        return self.device_rows[self.device_start[runtime_row] : self.device_start[runtime_row + 1]]


class Phase(IntEnum):
    """Which part of a step an event belongs to."""

    OTHER = 0
    DATA = 1
    FORWARD = 2
    BACKWARD = 3
    OPTIMIZER = 4


class KernelClass(IntEnum):
    """What a device event computes, from its name (and its operator where the name is silent)."""

    OTHER = 0
    GEMM_TENSOR_CORE = 1
    GEMM_SIMT = 2
    """fp32 (or fp64) GEMM on the plain cores."""
    CONV_TENSOR_CORE = 3
    CONV_SIMT = 4
    LAYOUT = 5
    """nchw <-> nhwc and other pure transposes made by the library, not asked for by an operator."""
    ATTENTION = 6
    """A fused attention kernel (flash, memory-efficient, cuDNN, CK)."""
    NORM = 7
    SOFTMAX = 8
    ELEMENTWISE = 9
    COPY = 10
    """Elementwise copies and casts (`copy_`, `contiguous`, `_to_copy`)."""
    REDUCE = 11
    POOL = 12
    INDEX = 13
    OPTIMIZER = 14
    """Fused or multi-tensor optimizer kernels."""
    TRITON = 15
    COMMUNICATION = 16
    MEMCPY_HTOD = 17
    MEMCPY_DTOH = 18
    MEMCPY_DTOD = 19
    MEMSET = 20


class IdleCause(IntEnum):
    """Why the device had nothing to do."""

    HOST_BOUND = 0
    """The host had not launched the next work yet."""
    DATA = 1
    """The host was waiting for the data loader."""
    SYNC = 2
    """The host had waited for the device, and the queue ran dry."""
    KERNEL_GAP = 3
    """Work was queued already: the device's own gap between two kernels."""
    COMMUNICATION = 4
    """Waiting for another rank (a stream wait on a communication stream)."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle intervals of the device in time order, split by cause. Arrays have shape (gaps,).

    Their sum plus the busy time is the span exactly; `intervals.check_sum` asserts it.
    """

    start_ns: IntArray
    end_ns: IntArray
    cause: Int8Array
    """`IdleCause`."""
    step: Int32Array
    """Step in which the gap lies, by the launch of the work that ends it; NONE outside steps."""
    before: Int32Array
    """The device row whose start ends the gap; NONE at the end of a span."""
    host: Int32Array
    """The host row to blame: the sync call, the loader's annotation, or the last launch; NONE if unknown."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """How an average steady step divides, in per cent of the step (medians over steady steps).

    `compute + memcpy + communication_exposed + idle == 100` for a trace with a device.
    For a CPU-only trace the four are host figures: operator time is compute, and idle is the time outside operators.
    """

    step_us: float
    step_spread_us: float
    """Half the range between the quartiles of the steady steps."""
    device_step_us: float
    """Device time from the first to the last device event launched by the step (median); equals step_us on the CPU."""
    gpu_idle_pct: float
    """1 - union(device work) / (first to last device event), whole recording."""
    step_idle_pct: float
    """The same inside the step spans."""
    compute_pct: float
    memcpy_pct: float
    communication_pct: float
    """All communication, overlapped or not."""
    communication_exposed_pct: float
    communication_overlap_pct: float
    """Share of communication time that runs beside compute."""
    idle_pct: float
    data_loading_pct: float
    """Host time in the data loader that the step waits for."""
    forward_pct: float
    backward_pct: float
    optimizer_pct: float
    idle_by_cause_pct: tuple[float, ...]
    """In the order of `IdleCause`."""
    kernels_per_step: float
    class_pct: tuple[float, ...]
    """Share of device work (kernels only) per `KernelClass`, in its order."""


class Vendor(IntEnum):
    """Who makes the device."""

    UNKNOWN = 0
    NVIDIA = 1
    AMD = 2
    CPU = 3
    OTHER = 4


@dataclass(frozen=True, slots=True)
class Device:
    """The device that the compute ran on, with peaks from the device table (NaN when unknown)."""

    name: str
    vendor: Vendor
    capability: tuple[int, int] = (0, 0)
    fp32_tflops: float = float("nan")
    """Plain fp32 (no tensor cores)."""
    tf32_tflops: float = float("nan")
    half_tflops: float = float("nan")
    """Dense bf16/fp16 on tensor cores; NaN where the device has none."""
    memory_gb_per_s: float = float("nan")
    has_tensor_cores: bool = False
    has_tf32: bool = False
    has_bf16: bool = False

    @property
    def is_cpu(self) -> bool:
        """Whether the recording has no accelerator."""
        return self.vendor is Vendor.CPU


@dataclass(frozen=True, slots=True)
class OpCosts:
    """Work of each operator from its shapes and dtypes. Shape (n,); NaN where it is not known."""

    flops: FloatArray
    bytes: FloatArray


EARLIER = -2
"""Stands for a step before the first replayed one."""


class NodeKind(IntEnum):
    """What a node of the replay graph is."""

    DEVICE = 0
    """A kernel, copy or fill on an in-order stream."""
    WAIT = 1
    """The host stands still until device work is done."""
    ENTRY = 2
    """A helper thread begins work that the main thread handed it."""
    JOIN = 3
    """The main thread stands still until a helper thread is done."""
    STEP_START = 4
    STEP_END = 5


@dataclass(frozen=True, slots=True)
class ReplayGraph:
    """The recorded dependency graph of the steady steps; made by `graph.build_graph`, run by `replay.replay`.

    Host time is a *position*: threads lie end to end on one axis, `lane * span_ns + (time - origin_ns)`, lane 0 being
    the main thread. Between nodes the host works at its own pace; nodes are where host and device, or two threads,
    meet. Nodes come in an order in which every node follows all that it depends on. See graph.py for the model.
    """

    origin_ns: int
    span_ns: int
    row_start: IntArray
    """Shape (n,): position where a host row begins; NONE for device rows and threads that are not replayed."""
    row_end: IntArray
    wait_start: IntArray
    """Stretches of host positions spent waiting in the recording, in order; they are nobody's own time."""
    wait_end: IntArray
    kind: Int8Array
    """`NodeKind` of each node."""
    row: Int32Array
    """The device event, or the host row that waits; NONE for the others."""
    queue: Int32Array
    """Stream of a DEVICE node; lane of any other."""
    lane: Int32Array
    """Lane whose clock `position` is read from."""
    position: IntArray
    """Where on the host it is launched, waits or begins; NONE for device work of which no launch is known."""
    call: IntArray
    """Where the launching or waiting call itself begins."""
    duration_ns: IntArray
    launch_ns: IntArray
    """From launch to earliest start of a DEVICE node; from the main thread's position to an ENTRY's start."""
    stream_ns: IntArray
    """From the end of the stream's previous event to the earliest start."""
    gap_ns: IntArray
    """Recorded wait that no dependency explains; replayed as it was."""
    edge_start: Int32Array
    """Shape (nodes + 1,): nodes that node k waits for are `edge_source[edge_start[k]:edge_start[k + 1]]`."""
    edge_source: Int32Array
    peer: IntArray
    """Main position that an ENTRY starts from, helper position that a JOIN waits for; NONE for the others."""
    step: Int32Array
    """Step of each node; EARLIER for device work launched before the first of them, NONE for work between steps."""
    node_of_row: Int32Array
    """Shape (n,): the node of a device row; NONE if it is not replayed."""
    steps: IntArray
    """The replayed steps, in order: from the first steady one to the last."""
    is_steady: BoolArray
    """Which of `steps` figures are taken over."""
    host_ns: IntArray
    """Recorded host span of each of `steps`."""
    period_ns: IntArray
    """Recorded time of each of `steps` from the completion of the one before to its own, device work included."""
    device_paced: bool
    """Whether the host ran ahead, so that the device sets the pace and the host's span says little."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that rules may ask about a trace."""

    trace: Trace
    device: Device
    steps: Steps
    tree: CallTree
    launches: Launches
    device_rows: IntArray
    """Kernels, copies and fills of the steady steps, in time order."""
    forward_op: Int32Array
    """Shape (n,): for a backward operator (and the device work it launched) the forward operator row; NONE else."""
    phase: Int8Array
    """Shape (n,): `Phase` of each event."""
    kernel_class: Int8Array
    """Shape (n,): `KernelClass` of device rows; OTHER for host rows."""
    costs: OpCosts
    idle: Idle
    breakdown: Breakdown
    graph: ReplayGraph
    job: Job | None = None
    """The other ranks of the same job, aligned with this one, where they were given."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """What was worked out of it since."""

    @property
    def is_cpu_only(self) -> bool:
        """Whether there is no device work at all: host operators are the compute."""
        return self.device.is_cpu

    @property
    def step_us(self) -> float:
        """The median steady step: the denominator of every share."""
        return self.breakdown.step_us
