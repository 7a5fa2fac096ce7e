"""slow-operator-choice: an operator that is slower than another one with the same result.

Why it is slow: `einsum` brings its operands into one fixed order for a batched product. Where the order does not fit it
copies a dense operand first, and a sum over products, `einsum("...k,...k->...")`, becomes a batch of 1 x k by k x 1
matrices, which no matrix routine does well, least of all in the backward. `cdist` with p = 1 runs one block of threads
per pair on a device, whatever the number of coordinates.
Trace: `aten::einsum` with a copy of a dense operand inside and a plain matrix as the other operand; `aten::einsum` with
a `bmm` of many vectors; `aten::_cdist_forward` with p = 1 and few coordinates on a device.
Edit: the copies go. For vector products, measured on the CPU with torch 2.13 (one thread, 12 k to 40 k products of 5 to
9): forward 0.9-1.4 with multiply and sum, kept as 1; backward 0.08-0.1, kept as 0.15. On a device the passes that
multiply and sum (for `cdist`: subtract, take the absolute value and sum) need at the memory's speed, never under a
launch each.
Gate: einsums that copy nothing are as fast as the product itself; `cdist` on the CPU is the faster way there (broadcast
takes 1.1-13 times as long), and on a device where the broadcast differences would take more than 1 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.op_inputs import element_bytes, tensors
from ..timeline.select import (
    backward_of,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    launched_by,
    ops_named,
    outermost,
    steady,
)
from ..trace.model import NONE, Dims, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_MIN_VECTOR_PRODUCTS = 512
_LONGEST_VECTOR = 64
_CPU_BACKWARD_LEFT = 0.15
_MOST_COORDINATES = 16
_MOST_BROADCAST_BYTES = 1 << 30
_LAUNCH_US = 3.0
"""Least time of a kernel, so that small tensors are not promised more than launches allow."""
_FORWARD_PASSES, _BACKWARD_PASSES = 4.0, 6.0
"""Times that the broadcast tensor is read or written: product written, read and reduced, operands read; twice for the
two gradients."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site and kind of operator."""
    yield from _candidates(
        timeline,
        _copying_einsums(timeline),
        what="einsum copies a dense operand before its matrix product",
        remedy="the matrix product in the operand's own order",
    )
    yield from _candidates(
        timeline,
        _vector_einsums(timeline),
        what="einsum computes a sum over products as many products of vectors",
        remedy="multiplying and summing",
    )
    yield from _candidates(
        timeline,
        _distances(timeline),
        what="cdist runs one block of threads per pair",
        remedy="summing absolute differences",
    )


def _candidates(timeline: Timeline, found: list[Occurrence], *, what: str, remedy: str) -> Iterator[Candidate]:
    for group in by_site(timeline, found):
        rows = np.array([occurrence.anchor for occurrence in group], dtype=np.int64)
        inputs = timeline.trace.inputs_of(int(rows[0]))
        sizes = " and ".join("x".join(map(str, dims)) for _, dims in tensors(inputs))
        yield Candidate(
            what=what,
            remedy=remedy,
            occurrences=group,
            evidence=(
                Evidence(
                    "calls",
                    "calls per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("sizes", "sizes of the operands", sizes or "not recorded", "elements"),
            ),
            probability=0.9 if sizes else 0.6,
        )


def _copying_einsums(timeline: Timeline) -> list[Occurrence]:
    """Einsums with a plain matrix that copy a dense operand."""
    hosts = ops_named(timeline, ("aten::einsum",))
    if not len(hosts):
        return []
    copies = outermost(timeline, steady(timeline, timeline.trace.rows_named(("aten::clone", "aten::contiguous"))))
    owner = inside(timeline, copies, hosts)
    found: list[Occurrence] = []
    for number in sorted(set(owner[owner != NONE].tolist())):
        host = int(hosts[number])
        if timeline.forward_op[host] == NONE and _copies_dense(timeline.trace.inputs_of(host)):
            inner = copies[owner == number]
            cost_rows = inner if timeline.is_cpu_only else np.concatenate(launched_by(timeline, inner))
            found.append(Occurrence(host, Edit(removed_ops=inner), cost_rows))
    return found


def _copies_dense(inputs: OpInputs) -> bool:
    """Whether one of an einsum's two operands is a plain matrix and the other, of higher rank, dense in memory; True
    where sizes were not recorded."""
    operands = _operands(inputs)
    if not operands:
        return True
    ranks = sorted(len(dims) for dims, _ in operands)
    if len(operands) != 2 or ranks[0] != 2 or ranks[1] < 3:
        return False
    dims, strides = max(operands, key=lambda one: len(one[0]))
    return not strides or _is_dense(dims, strides)


def _operands(inputs: OpInputs) -> list[tuple[Dims, Dims]]:
    """Sizes and strides of the tensors in an einsum's list; strides are () where not recorded."""
    lists = [argument for argument, dims in enumerate(inputs.dims) if any(isinstance(one, tuple) for one in dims)]
    if not lists:
        return []
    sizes = [one for one in inputs.dims[lists[0]] if isinstance(one, tuple)]
    held = inputs.strides[lists[0]] if len(inputs.strides) > lists[0] else ()
    strides = [one for one in held if isinstance(one, tuple)]
    return [(dims, strides[i] if len(strides) == len(sizes) else ()) for i, dims in enumerate(sizes)]


def _is_dense(dims: Dims, strides: Dims) -> bool:
    expected = 1
    for size, stride in zip(reversed(dims), reversed(strides), strict=False):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _vector_einsums(timeline: Timeline) -> list[Occurrence]:
    """Einsums that end in a batch of products of two vectors."""
    hosts = ops_named(timeline, ("aten::einsum",))
    products = steady(timeline, timeline.trace.rows_named(("aten::bmm",)))
    owner = inside(timeline, products, hosts)
    found: list[Occurrence] = []
    for row, number in zip(products[owner != NONE].tolist(), owner[owner != NONE].tolist(), strict=True):
        first, second = (timeline.trace.inputs_of(row).shape(i) for i in (0, 1))
        if len(first) != 3 or len(second) != 3 or first[1] != 1 or second[2] != 1:
            continue
        if first[0] >= _MIN_VECTOR_PRODUCTS and first[2] <= _LONGEST_VECTOR:
            moved = prod(first) * element_bytes(timeline.trace.inputs_of(row), 0)
            found.append(_priced(timeline, int(hosts[number]), moved, cpu_backward=_CPU_BACKWARD_LEFT))
    return [occurrence for occurrence in found if occurrence.edit.scales]


def _distances(timeline: Timeline) -> list[Occurrence]:
    """Calls of `cdist` with p = 1 and few coordinates on a device."""
    if timeline.is_cpu_only:
        return []
    found: list[Occurrence] = []
    for row in ops_named(timeline, ("aten::cdist", "aten::_cdist_forward")).tolist():
        inputs = timeline.trace.inputs_of(row)
        first, second = inputs.shape(0), inputs.shape(1)
        if len(first) < 2 or len(second) < 2 or first[-1] > _MOST_COORDINATES or not _is_one(inputs.value(2)):
            continue
        moved = prod(first) * second[-2] * element_bytes(inputs, 0)
        if moved <= _MOST_BROADCAST_BYTES:
            found.append(_priced(timeline, row, moved, cpu_backward=1.0))
    return [occurrence for occurrence in found if occurrence.edit.scales]


def _is_one(text: str) -> bool:
    return text.rstrip("0").rstrip(".") == "1"


def _priced(timeline: Timeline, host: int, moved_bytes: float, *, cpu_backward: float) -> Occurrence:
    """One call whose forward and backward would instead pass over `moved_bytes` a few times."""
    hosts = np.array([host], dtype=np.int64)
    backward = backward_of(timeline, hosts)[0]
    if timeline.is_cpu_only:
        cost_rows = np.sort(np.concatenate([hosts, backward]))
        return Occurrence(host, Edit(scales=_scales((backward, cpu_backward))), cost_rows)
    forward_device = launched_by(timeline, hosts)[0]
    backward_device = np.concatenate([hosts[:0], *launched_by(timeline, backward)])
    share = _share_left(timeline, moved_bytes)
    scales = _scales(
        (forward_device, share(forward_device, _FORWARD_PASSES)),
        (backward_device, share(backward_device, _BACKWARD_PASSES)),
    )
    return Occurrence(host, Edit(scales=scales), np.sort(np.concatenate([forward_device, backward_device])))


def _share_left(timeline: Timeline, moved_bytes: float) -> Callable[[IntArray, float], float]:
    """How much of the recorded device time is left when so many passes over the bytes take its place."""
    gb_per_s = timeline.device.memory_gb_per_s

    def share(rows: IntArray, passes: float) -> float:
        recorded_us = float(timeline.trace.dur_ns[rows].sum()) / 1e3
        if np.isnan(gb_per_s) or not recorded_us:
            return 1.0
        wanted_us = max(passes * moved_bytes / (gb_per_s * 1e3), 3 * _LAUNCH_US)
        return round(min(1.0, wanted_us / recorded_us), 2)

    return share


def _scales(*parts: tuple[IntArray, float]) -> tuple[Scale, ...]:
    return tuple(Scale(rows, factor) for rows, factor in parts if len(rows) and factor < 1.0)


PATTERN = Pattern(
    code="TAP704",
    slug="slow-operator-choice",
    title="Slower operator than needed",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="pointwise and operators",
)
