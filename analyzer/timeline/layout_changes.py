"""Where tensors change between channels first and channels last, and what causes it: one row for each place.

Worked out when asked for. Copies are seen by the strides of their two tensors, the library's own transposes by the
names of their kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..trace.model import NONE, Category, Dims, IntArray, OpInputs
from .edit import no_rows
from .model import KernelClass, Timeline
from .module_names import innermost_modules
from .op_inputs import element_bytes
from .select import count_per_step, device_rows, launched_by, outer_op, steady, us_per_step
from .sites import group_by_site

_RANKS = (3, 4, 5)
_PLAIN_ORDER = {3: "CHW", 4: "NCHW", 5: "NCDHW"}
_CHANNELS_LAST_ORDER = {3: "HWC", 4: "NHWC", 5: "NDHWC"}
_CHANNELS_LAST_AXES = {3: (1, 2, 0), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
"""Where each axis of the plain order goes."""
_DIRECTIONS = (
    (re.compile(r"(nchw|ncdhw)\w*To\w*(nhwc|ndhwc)", re.IGNORECASE), "NCHW -> NHWC"),
    (re.compile(r"(nhwc|ndhwc)\w*To\w*(nchw|ncdhw)", re.IGNORECASE), "NHWC -> NCHW"),
)


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """One place of the program where tensors change between channels first and channels last, per steady step."""

    anchor: int
    """The host row that causes it, in the first steady step (a device row where no launch is known)."""
    change: str
    """"NCHW -> NHWC", "HWC -> CHW" and the like; "NCHW <-> NHWC" where only the kernel's kind is known."""
    cause: str
    """The operator that Python called (`contiguous`, `to`, `conv2d`, `conv2d (backward)`); "" where it is not known."""
    by_library: bool
    """Whether the library transposes for its own ends, not the program."""
    module: str
    """The module that it happens in; "" without Python stacks."""
    shape: Dims
    """The largest tensor; () where it is not known."""
    bytes_moved: int
    """Per step, read and written; 0 where sizes are not known."""
    count_per_step: float
    us_per_step: float
    """Of the kernels; on the CPU of the copies."""
    rows: IntArray
    """The copies or kernels in the steady steps."""


def layout_changes(timeline: Timeline) -> tuple[LayoutChange, ...]:
    """Every place where layouts change, the one that takes longest first."""
    changes = [*_copies(timeline), *_library_transposes(timeline)]
    return tuple(sorted(changes, key=lambda change: -change.us_per_step))


def layout_of(dims: Dims, strides: Dims) -> str:
    """How a batch of images or volumes lies in memory; "" where it cannot be told, or both orders are one."""
    if len(dims) not in (4, 5) or len(strides) != len(dims) or dims[1] <= 1 or max(dims[2:]) <= 1:
        return ""
    order = _memory_order(dims, strides)
    if order == tuple(range(len(dims))):
        return _PLAIN_ORDER[len(dims)]
    return _CHANNELS_LAST_ORDER[len(dims)] if order == _CHANNELS_LAST_AXES[len(dims)] else "other"


def _memory_order(dims: Dims, strides: Dims) -> Dims:
    """Axes from the outermost to the innermost in memory; of axes of size 1 the place says nothing, so they stay."""
    order = sorted((axis for axis in range(len(dims)) if dims[axis] > 1), key=lambda axis: -strides[axis])
    for axis in range(len(dims)):
        if dims[axis] <= 1:
            order.insert(axis, axis)
    return tuple(order)


def _copies(timeline: Timeline) -> Iterator[LayoutChange]:
    """Copies whose two tensors lie in memory in different orders."""
    trace = timeline.trace
    rows = trace.rows_named(("aten::copy_",))
    rows = steady(timeline, rows[trace.cat[rows] == Category.CPU_OP])
    used = trace.inputs[rows]
    change_of = {index: _change(trace.input_table[index]) if index >= 0 else "" for index in set(used.tolist())}
    changes = np.array([change_of[index] for index in used.tolist()], dtype=object)
    for change in sorted(set(change_of.values()) - {""}):
        chosen = rows[changes == change]
        causes = np.array([outer_op(timeline, row) for row in chosen.tolist()], dtype=np.int64)
        for part in _by_cause(timeline, chosen, causes):
            yield _described(timeline, change, part, _work(timeline, part), causes[np.isin(chosen, part)])


def _change(inputs: OpInputs) -> str:
    """What a copy does to the order in memory: "NCHW -> NHWC"; "" if neither axis group moves as a whole."""
    dims = inputs.shape(0)
    rank = len(dims)
    if rank not in _RANKS or inputs.shape(1) != dims or len(inputs.stride(0)) != rank or len(inputs.stride(1)) != rank:
        return ""
    # One element has no order, and what is expanded has none of its own.
    if max(dims) <= 1 or any(inputs.stride(1)[axis] <= 0 for axis in range(rank) if dims[axis] > 1):
        return ""
    goes_to, comes_from = _memory_order(dims, inputs.stride(0)), _memory_order(dims, inputs.stride(1))
    moved = tuple(comes_from.index(axis) for axis in goes_to)
    plain, last = _PLAIN_ORDER[rank], _CHANNELS_LAST_ORDER[rank]
    if moved == _CHANNELS_LAST_AXES[rank]:
        return f"{plain} -> {last}"
    back = tuple(_CHANNELS_LAST_AXES[rank].index(axis) for axis in range(rank))
    return f"{last} -> {plain}" if moved == back else ""


def _library_transposes(timeline: Timeline) -> Iterator[LayoutChange]:
    """The library's own transposes round convolutions, by what launched them."""
    trace = timeline.trace
    device = device_rows(timeline)
    kernels = device[timeline.kernel_class[device] == KernelClass.LAYOUT]
    names = trace.name[kernels]
    change_of = {name: _direction(trace.names[name]) for name in set(names.tolist())}
    changes = np.array([change_of[name] for name in names.tolist()], dtype=object)
    for change in sorted(set(change_of.values())):
        chosen = kernels[changes == change]
        forward = timeline.forward_op[chosen]
        launching = np.where(forward != NONE, forward, timeline.launches.op[chosen])
        causes = np.array(
            [outer_op(timeline, op) if op != NONE else kernel for op, kernel in zip(launching, chosen, strict=True)],
            dtype=np.int64,
        )
        for is_backward in (False, True):
            which = (forward != NONE) == is_backward
            for part in _by_cause(timeline, chosen[which], causes[which]):
                yield _described(timeline, change, part, part, causes[np.isin(chosen, part)], is_backward)


def _direction(kernel: str) -> str:
    return next((change for pattern, change in _DIRECTIONS if pattern.search(kernel)), "NCHW <-> NHWC")


def _by_cause(timeline: Timeline, rows: IntArray, causes: IntArray) -> Iterator[IntArray]:
    """`rows` by the site of the host rows that cause them; those of which no launch is known stay together."""
    is_host = ~np.isin(timeline.trace.cat[causes], (Category.KERNEL, Category.MEMCPY, Category.MEMSET))
    if not is_host.all():
        yield rows[~is_host]
    for group in group_by_site(timeline, np.unique(causes[is_host])):
        yield rows[is_host & np.isin(causes, group)]


def _described(
    timeline: Timeline, change: str, rows: IntArray, work: IntArray, causes: IntArray, is_backward: bool = False
) -> LayoutChange:
    trace = timeline.trace
    first = int(causes.min())
    is_known = trace.cat[first] == Category.CPU_OP
    cause = trace.name_of(first).removeprefix("aten::") if is_known else ""
    cause += " (backward)" if is_backward else ""
    module, _ = innermost_modules(timeline, first)
    is_copy = trace.cat[rows[0]] == Category.CPU_OP
    shapes = {int(row): trace.inputs_of(int(row)).shape(0) for row in (rows if is_copy else causes)}
    bytes_each = np.array(
        [2 * prod(trace.inputs_of(int(row)).shape(0)) * element_bytes(trace.inputs_of(int(row)), 0) for row in rows]
        if is_copy
        else [0] * len(rows)
    )
    steps = max(len(timeline.steps.steady), 1)
    return LayoutChange(
        anchor=first,
        change=change,
        cause=cause,
        by_library=not is_copy or "conv" in cause,
        module=module,
        shape=max(shapes.values(), key=prod, default=()),
        bytes_moved=int(bytes_each.sum() / steps),
        count_per_step=count_per_step(timeline, rows),
        us_per_step=us_per_step(timeline, work),
        rows=rows,
    )


def _work(timeline: Timeline, copies: IntArray) -> IntArray:
    """The kernels of copies; on the CPU the copies themselves."""
    if timeline.is_cpu_only:
        return copies
    return np.sort(np.concatenate([no_rows(), *launched_by(timeline, copies)]))
