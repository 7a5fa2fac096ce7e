"""The collective communication of a recording: what was exchanged, when, in which step.

With a device these are the communication kernels. Without one they are the ranges that the backend records on its own
threads (`gloo:all_reduce`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from math import prod

import numpy as np

from ..trace.model import NONE, Category, Int8Array, Int32Array, IntArray, Trace
from .columns import is_named
from .model import KernelClass, Timeline
from .op_inputs import tensors
from .select import device_rows, steady


class CollectiveKind(IntEnum):
    """What a collective does."""

    OTHER = 0
    ALL_REDUCE = 1
    BROADCAST = 2
    ALL_GATHER = 3
    REDUCE_SCATTER = 4
    ALL_TO_ALL = 5
    """All-to-all, and pairs of send and receive, which is how NCCL does it."""
    REDUCE = 6
    BARRIER = 7


@dataclass(frozen=True, slots=True)
class Collectives:
    """The collectives of the steady steps in order of start. Arrays have shape (collectives,)."""

    row: IntArray
    """The kernel; on the CPU the backend's range."""
    host: IntArray
    """The outermost operator that asked for it (`c10d::allreduce_`); on the CPU the range itself."""
    kind: Int8Array
    """`CollectiveKind`."""
    elements: IntArray
    """Elements that go in; NONE if not recorded."""
    group_size: IntArray
    """Ranks that take part; NONE if not recorded."""

    def __len__(self) -> int:
        return len(self.row)


_KINDS: tuple[tuple[re.Pattern[str], CollectiveKind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"reducescatter", CollectiveKind.REDUCE_SCATTER),
        (r"allreduce", CollectiveKind.ALL_REDUCE),
        (r"allgather", CollectiveKind.ALL_GATHER),
        (r"alltoall|sendrecv|^send|^recv", CollectiveKind.ALL_TO_ALL),
        (r"broadcast", CollectiveKind.BROADCAST),
        (r"barrier", CollectiveKind.BARRIER),
        (r"(^|[^a-z])reduce", CollectiveKind.REDUCE),
    )
)
"""Tried in order on the small letters of a name, underscores left out."""
_BACKEND_RANGE = re.compile(r"^(gloo|mpi|ucc):")


def find_collectives(timeline: Timeline) -> Collectives:
    """All collectives of the steady steps; none at once where the trace has none."""
    rows = _kernels(timeline)
    if not len(rows):
        rows = backend_ranges(timeline) if timeline.is_cpu_only else rows
    if not len(rows):
        return Collectives(rows, rows, np.empty(0, dtype=np.int8), rows, rows)
    trace = timeline.trace
    recorded = {one.row: one for one in trace.collectives}
    host = _hosts(timeline, rows)
    kind = np.empty(len(rows), dtype=np.int8)
    elements = np.full(len(rows), NONE, dtype=np.int64)
    group_size = np.full(len(rows), NONE, dtype=np.int64)
    for i, (row, asked) in enumerate(zip(rows.tolist(), host.tolist(), strict=True)):
        said = next((recorded[r] for r in (row, int(timeline.launches.op[row]), asked) if r in recorded), None)
        names = (said.name if said else "", trace.name_of(asked), *_ranges_above(timeline, row), trace.name_of(row))
        kind[i] = next((found for name in names if (found := kind_of(name))), CollectiveKind.OTHER)
        elements[i] = said.elements_in if said else _elements(trace, asked)
        group_size[i] = said.group_size if said else NONE
    return Collectives(rows, host, kind, elements, group_size)


def kind_of(name: str) -> CollectiveKind:
    """The kind that an operator, a range or a kernel of this name is of; OTHER if it says nothing."""
    plain = name.lower().replace("_", "")
    return next((kind for pattern, kind in _KINDS if pattern.search(plain)), CollectiveKind.OTHER)


def backend_ranges(timeline: Timeline) -> IntArray:
    """Ranges of the steady steps in which a backend on the CPU (gloo, MPI) communicates."""
    trace = timeline.trace
    wanted = [i for i, name in enumerate(trace.names) if _BACKEND_RANGE.match(name)]
    if not wanted:
        return np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(np.isin(trace.name, wanted) & (trace.cat != Category.DEVICE_ANNOTATION))
    return steady(timeline, rows)


def _kernels(timeline: Timeline) -> IntArray:
    device = device_rows(timeline)
    return device[timeline.kernel_class[device] == KernelClass.COMMUNICATION]


def _hosts(timeline: Timeline, rows: IntArray) -> IntArray:
    """The outermost communication operator round each launch; the row itself where none is known."""
    trace, tree = timeline.trace, timeline.tree
    above: Int32Array = timeline.launches.op[rows]
    found = np.where(above != NONE, above, rows).astype(np.int64)
    outer = np.where(above != NONE, np.append(tree.parent, NONE)[above], NONE)
    is_own = (outer != NONE) & is_named(trace, np.maximum(outer, 0), lambda name: name.startswith("c10d::"))
    return np.where(is_own, outer, found)


def _ranges_above(timeline: Timeline, row: int) -> tuple[str, ...]:
    """The name of the annotation round the launch of a kernel: `nccl:all_reduce`."""
    runtime = int(timeline.launches.runtime[row])
    annotation = int(timeline.tree.annotation[runtime]) if runtime != NONE else NONE
    return (timeline.trace.name_of(annotation),) if annotation != NONE else ()


def _elements(trace: Trace, host: int) -> int:
    """Elements of the tensors that an operator was given; NONE if shapes were not recorded."""
    sizes = [prod(dims) for _, dims in tensors(trace.inputs_of(host))]
    return sum(sizes) if sizes else NONE
