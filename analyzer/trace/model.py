"""The trace as values: events in numpy columns, strings interned once, times in integer nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .counters import NO_COUNTERS, CounterTable
from .recording import Recording

IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
Int8Array = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

NONE = -1
"""Marks "not recorded" in every integer column."""


class Category(IntEnum):
    """What kind of event a row is, whatever the trace called it (`Operator` and `cpu_op` are one)."""

    OTHER = 0
    CPU_OP = 1
    USER_ANNOTATION = 2
    PYTHON_FUNCTION = 3
    RUNTIME = 4
    """A host-side runtime or driver call (`cuda_runtime`, `cuda_driver`, `hip*`, `mtia_runtime`)."""
    KERNEL = 5
    MEMCPY = 6
    MEMSET = 7
    DEVICE_ANNOTATION = 8
    SYNC = 9
    """A `cuda_sync` record: which stream or event a host or a stream waited for."""
    OVERHEAD = 10
    PROFILER = 11
    """Book-keeping of the profiler itself (`Trace` spans); never counted as work."""
    COUNTER_RANGE = 12
    """`cuda_profiler_range`: hardware counters over a kernel."""


HOST_CATEGORIES = (Category.CPU_OP, Category.USER_ANNOTATION, Category.PYTHON_FUNCTION, Category.RUNTIME)
DEVICE_CATEGORIES = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)


@dataclass(frozen=True, slots=True)
class Thread:
    """A host thread or a device queue: the (pid, tid) pair as the trace wrote it, with its recorded names."""

    pid: int | str
    tid: int | str
    process_name: str = ""
    name: str = ""


Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpInputs:
    """What `record_shapes` wrote for one operator call. Lists run over arguments; missing ones are empty.

    A tensor argument has its sizes in `dims`; a tensor list has a tuple of sizes, one per tensor.
    """

    dims: tuple[Dims | tuple[Dims, ...], ...] = ()
    strides: tuple[Dims | tuple[Dims, ...], ...] = ()
    types: tuple[str, ...] = ()
    concrete: tuple[str, ...] = ()

    def shape(self, argument: int) -> Dims:
        """Sizes of tensor argument number `argument`; () when it is no tensor or was not recorded."""
        if argument >= len(self.dims):
            return ()
        return _flat(self.dims[argument])

    def stride(self, argument: int) -> Dims:
        """Strides, in elements, of tensor argument number `argument`; () when not recorded."""
        if argument >= len(self.strides):
            return ()
        return _flat(self.strides[argument])

    def dtype(self, argument: int) -> str:
        """Type name of argument number `argument` as recorded (`float`, `c10::BFloat16`, `Scalar`); "" if none."""
        return self.types[argument] if argument < len(self.types) else ""

    def value(self, argument: int) -> str:
        """Concrete value of a non-tensor argument as recorded (`"[1, 1]"`, `"False"`); "" if none."""
        return self.concrete[argument] if argument < len(self.concrete) else ""


def _flat(sizes: Dims | tuple[Dims, ...]) -> Dims:
    """Sizes of one tensor; () of a list of tensors. A plain loop: it is asked for every argument of every operator."""
    for size in sizes:
        if not isinstance(size, int):
            return ()
    return sizes  # pyright: ignore[reportReturnType]


class InputTable(Protocol):
    """Interned operator inputs, decoded when asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> OpInputs: ...


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """`[memory]` instants in time order. Sizes in bytes; `total_*` are NONE where the trace has none."""

    ts_ns: IntArray
    address: IntArray
    size_bytes: IntArray
    device: Int32Array
    """Device index; NONE for the host."""
    total_allocated_bytes: IntArray
    total_reserved_bytes: IntArray


@dataclass(frozen=True, slots=True)
class FlowTable:
    """Flow arrows whose two ends were both seen. `kind` indexes `kinds` ("fwdbwd", "launch", ...).

    Launch arrows of traces that record correlations are left out: they say the same.
    """

    kind: Int8Array
    kinds: tuple[str, ...]
    start_ts_ns: IntArray
    start_thread: Int32Array
    end_ts_ns: IntArray
    end_thread: Int32Array


@dataclass(frozen=True, slots=True)
class Collective:
    """What the trace recorded of one collective communication call."""

    row: int
    name: str
    elements_in: int
    elements_out: int
    dtype: str
    group_size: int
    group_name: str


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """One entry of the trace's `deviceProperties`; 0 or "" where it said nothing."""

    index: int
    name: str
    total_memory_bytes: int = 0
    compute_major: int = 0
    compute_minor: int = 0
    multiprocessors: int = 0
    warp_size: int = 0


@dataclass(frozen=True, slots=True)
class Distributed:
    """The trace's `distributedInfo`."""

    backend: str = ""
    rank: int = NONE
    world_size: int = NONE


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the file that could not be used, counted instead of raised.

    `offset` is the byte offset of the first occurrence in the uncompressed document, NONE if unknown.
    """

    kind: str
    message: str
    count: int = 1
    offset: int = NONE

    @property
    def text(self) -> str:
        """The message with how often and where: "... (3 times, first at byte 1,024)"."""
        times = f"{self.count:,} times" if self.count > 1 else ""
        where = f"{'first ' if times else ''}at byte {self.offset:,}" if self.offset != NONE else ""
        details = ", ".join(part for part in (times, where) if part)
        return f"{self.message} ({details})" if details else self.message


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """What the document says besides its events."""

    paths: tuple[str, ...]
    devices: tuple[DeviceProperties, ...] = ()
    distributed: Distributed | None = None
    with_stack: bool | None = None
    record_shapes: bool | None = None
    profile_memory: bool | None = None
    base_ns: int = 0
    """Unix time, in ns, of `ts_ns == 0`; 0 if the trace has no base."""
    cuda_runtime_version: int = 0
    hip_runtime_version: int = 0
    torch_version: str = ""
    raw_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """One recording. Row i of every column is one complete (`ph: X`) event; rows are in order of (ts, -dur).

    All columns have shape (n,). Integers are NONE (-1) where the trace recorded nothing.
    """

    ts_ns: IntArray
    dur_ns: IntArray
    name: Int32Array
    """Index into `names`."""
    cat: Int8Array
    """`Category`."""
    thread: Int32Array
    """Index into `threads`."""
    device: Int32Array
    stream: IntArray
    correlation: IntArray
    external_id: IntArray
    sequence: IntArray
    """Autograd `Sequence number`, shared by a forward op and its backward."""
    python_id: IntArray
    python_parent: IntArray
    inputs: Int32Array
    """Index into `input_table`."""
    stack: Int32Array
    """Index into `stacks`: the `Call stack` arg, innermost frame first, frames parted by ";"."""
    size_bytes: IntArray
    """Bytes moved by a memcpy or memset."""
    sync_stream: IntArray
    """For SYNC rows: the stream waited on."""
    sync_event: IntArray
    """For SYNC rows: correlation id of the `cudaEventRecord` waited on."""
    file_index: IntArray
    """Position of the event in the file's `traceEvents`, so anybody can look it up."""

    names: tuple[str, ...]
    threads: tuple[Thread, ...]
    stacks: tuple[str, ...]
    input_table: InputTable
    memory: MemoryTable
    flows: FlowTable
    collectives: tuple[Collective, ...]
    info: TraceInfo
    problems: tuple[Problem, ...]
    recording: Recording | None = None
    """What `torchtraceap record` wrote beside the trace."""
    counters: CounterTable = NO_COUNTERS
    """Hardware counters of kernel launches."""

    def __len__(self) -> int:
        return len(self.ts_ns)

    @property
    def end_ns(self) -> IntArray:
        """End of each event."""
        return self.ts_ns + self.dur_ns

    def name_of(self, row: int) -> str:
        """The name of event `row`."""
        return self.names[self.name[row]]

    def inputs_of(self, row: int) -> OpInputs:
        """The recorded inputs of event `row`; empty when shapes were not recorded."""
        index = int(self.inputs[row])
        return self.input_table[index] if index >= 0 else OpInputs()

    def stack_of(self, row: int) -> str:
        """The `Call stack` arg of event `row`; "" if none."""
        index = int(self.stack[row])
        return self.stacks[index] if index >= 0 else ""

    def rows(self, *categories: Category) -> IntArray:
        """Rows of the given categories, in time order."""
        wanted = np.zeros(len(Category), dtype=np.bool_)
        wanted[list(categories)] = True
        return np.flatnonzero(wanted[self.cat])

    def rows_named(self, names: Sequence[str]) -> IntArray:
        """Rows whose name is exactly one of `names`, in time order."""
        wanted = frozenset(names)
        ids = [i for i, name in enumerate(self.names) if name in wanted]
        return np.flatnonzero(np.isin(self.name, ids)) if ids else np.empty(0, dtype=np.int64)
