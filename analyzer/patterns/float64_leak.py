"""float64-leak: one float64 array among float32 tensors makes everything computed from it float64.

Why it is slow: doubles are twice the bytes in memory and on the bus, are converted wherever they meet float32, fill
half a vector register, and have a fraction of the rate on most devices.
Trace: operators on large double tensors in a step that works in float32 otherwise: the first of them takes the double
in, what it gives and the backward of all that is double as well, until a cast.
Edit: conversions between double and the other floating-point types go. What is left takes half its time on the CPU, by
the bytes: measured with torch 2.13 on one thread over pointwise operators, sums, softmax, convolutions and matrix
products of 0.2-1.2 million elements, 0.25-0.6. With an integer operand, which is converted all the same, 0.5-1.1: 0.75.
Sorting and resampling, bound by their indices, gain nothing. On a device pointwise kernels and copies move half the
bytes, and matrix kernels gain what the device's float64 rate lacks.
Gate: doubles without dimensions, which promote nothing; programs that are double throughout; doubles that an explicit
cast in the step asks for; small tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among, is_named
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Device, KernelClass, Timeline, Vendor
from ..timeline.op_inputs import holds_type, of_each, taking
from ..timeline.select import (
    backward_of,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    is_noticeable,
    launched_by,
    outer_op,
    outermost,
    steady,
)
from ..trace.model import NONE, BoolArray, Category, IntArray, OpInputs, Trace
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_DOUBLE = "double"
_NARROWER = ("float", "c10::Half", "c10::BFloat16")
_INTEGERS = ("long int", "long", "int", "unsigned char")
_FEW_ELEMENTS = 1024
"""Smaller tensors cost their operator's overhead, whatever their type."""
_NOTICEABLE_SHARE = 0.002
_CASTS = frozenset({"aten::to", "aten::_to_copy", "aten::type_as"})
_INDEX_BOUND = ("aten::sort", "aten::argsort", "aten::topk", "aten::upsample_bilinear2d", "aten::upsample_nearest2d")
_BYTES_FACTOR = 0.5
_WITH_INTEGERS_FACTOR = 0.75
_FULL_RATE = frozenset({(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)})
"""NVIDIA's compute capabilities with half the float32 rate in float64; the others have 1/32 or 1/64 of it."""
_MATRIX = (KernelClass.GEMM_SIMT, KernelClass.GEMM_TENSOR_CORE, KernelClass.CONV_SIMT, KernelClass.CONV_TENSOR_CORE)


@dataclass(frozen=True, slots=True)
class _Run:
    """Operators of one step from the one that takes a double in to the one that casts it, backward included."""

    entry: int
    hosts: IntArray
    """Outermost operators, in time order."""
    conversions: IntArray
    """Inside them, copies from one floating-point type to the other."""
    with_integers: IntArray
    """Those of `hosts` that combine doubles with integers."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place where doubles come in."""
    doubles = _double_operators(timeline)
    if not len(doubles):
        return
    runs = {run.entry: run for run in _runs(timeline, doubles)}
    for occurrences in by_site(timeline, (_occurrence(timeline, run) for run in runs.values())):
        cost_rows = np.sort(np.concatenate([occurrence.cost_rows for occurrence in occurrences]))
        if not is_noticeable(timeline, cost_rows, _NOTICEABLE_SHARE):
            continue
        hosts = np.sort(np.concatenate([runs[occurrence.anchor].hosts for occurrence in occurrences]))
        conversions = np.sort(np.concatenate([runs[occurrence.anchor].conversions for occurrence in occurrences]))
        yield Candidate(
            what="a float64 tensor makes what is computed from it float64",
            remedy="float32 from the start",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "operators",
                    "operators on float64 per step, backward included",
                    count_per_step(timeline, hosts),
                    "",
                    events_of(timeline, in_typical_step(timeline, hosts)),
                ),
                Evidence(
                    "conversions", "conversions from and to float64 per step", count_per_step(timeline, conversions), ""
                ),
            ),
            probability=0.9,
        )


def _double_operators(timeline: Timeline) -> IntArray:
    """Operators of the steady steps that take a large tensor of doubles, or make one of a large tensor and doubles."""
    trace = timeline.trace
    rows = taking(trace, steady(timeline, trace.rows(Category.CPU_OP)), _DOUBLE)
    takes = _fact(trace, rows, lambda inputs: holds_type(inputs, _DOUBLE, _FEW_ELEMENTS))
    promotes = _fact(trace, rows, _promotes) & ~is_named(trace, rows, lambda name: name.endswith("_"))
    return rows[takes | promotes]


def _runs(timeline: Timeline, doubles: IntArray) -> Iterator[_Run]:
    """The runs of all steps; those that nothing but doubles takes part in are left out."""
    trace = timeline.trace
    forward = doubles[timeline.forward_op[doubles] == NONE]
    tops = distinct(np.array([outer_op(timeline, row) for row in forward.tolist()], dtype=np.int64))
    tops = outermost(timeline, tops)
    tops = tops[np.lexsort((trace.ts_ns[tops], trace.thread[tops], timeline.steps.of[tops]))]
    backward = backward_of(timeline, tops)
    mixed = doubles[_fact(trace, doubles, lambda inputs: _mixes(inputs, _NARROWER))]
    integral = doubles[_fact(trace, doubles, lambda inputs: _mixes(inputs, _INTEGERS))]
    copies = mixed[is_among(mixed, trace.rows_named(("aten::copy_",)))]
    for members in _cut(timeline, tops):
        hosts = np.sort(np.concatenate([tops[members], *(backward[member] for member in members)]))
        hosts = outermost(timeline, hosts)
        is_mixed = inside(timeline, mixed, hosts) != NONE
        entry = int(tops[members[0]])
        if not is_mixed.any() or _is_asked_for(timeline, entry):
            continue
        owner = inside(timeline, integral, hosts)
        with_integers = hosts[distinct(owner[owner != NONE])]
        yield _Run(entry, hosts, copies[inside(timeline, copies, hosts) != NONE], with_integers)


def _cut(timeline: Timeline, tops: IntArray) -> Iterator[list[int]]:
    """Positions in `tops`, parted by step and thread, and behind each cast to a narrower type."""
    trace, steps = timeline.trace, timeline.steps.of
    for _, same in groupby(range(len(tops)), lambda i: (steps[tops[i]], trace.thread[tops[i]])):
        members: list[int] = []
        for i in same:
            members.append(i)
            if _casts_down(trace, int(tops[i])):
                yield members
                members = []
        if members:
            yield members


def _casts_down(trace: Trace, row: int) -> bool:
    """Whether an operator only turns doubles into a narrower type."""
    inputs = trace.inputs_of(row)
    return trace.name_of(row) in _CASTS and inputs.dtype(0) == _DOUBLE and inputs.value(1) in ("5", "6", "15")


def _is_asked_for(timeline: Timeline, entry: int) -> bool:
    """Whether the double is made by a cast in the step: `x.double()`."""
    trace = timeline.trace
    return trace.name_of(entry) in _CASTS and trace.inputs_of(entry).dtype(0) != _DOUBLE


def _promotes(inputs: OpInputs) -> bool:
    """Whether a large tensor of a narrower type meets doubles, however few."""
    return holds_type(inputs, _DOUBLE) and any(holds_type(inputs, other, _FEW_ELEMENTS) for other in _NARROWER)


def _mixes(inputs: OpInputs, others: tuple[str, ...]) -> bool:
    return holds_type(inputs, _DOUBLE) and any(holds_type(inputs, other) for other in others)


def _occurrence(timeline: Timeline, run: _Run) -> Occurrence:
    launched = launched_by(timeline, run.hosts)
    device = np.sort(np.concatenate([no_rows(), *launched]))
    on_host = run.hosts[np.array([not len(rows) for rows in launched], dtype=np.bool_)]
    on_host = on_host[~is_among(on_host, timeline.trace.rows_named(_INDEX_BOUND))]
    with_integers = is_among(on_host, run.with_integers)
    scales = (
        Scale(on_host[~with_integers], _BYTES_FACTOR),
        Scale(on_host[with_integers], _WITH_INTEGERS_FACTOR),
        *_device_scales(timeline, device),
    )
    cost_rows = run.hosts if timeline.is_cpu_only else device
    return Occurrence(run.entry, Edit(scales=scales, removed_ops=run.conversions), cost_rows)


def _device_scales(timeline: Timeline, device: IntArray) -> tuple[Scale, ...]:
    if not len(device):
        return ()
    is_matrix = is_among(timeline.kernel_class[device], _MATRIX)
    return (Scale(device[is_matrix], _matrix_factor(timeline.device)), Scale(device[~is_matrix], _BYTES_FACTOR))


def _matrix_factor(device: Device) -> float:
    """Time in float32 over time in float64 of a matrix kernel; a tenth where the device has few float64 units, of
    which the rest is launch and memory."""
    has_full_rate = device.vendor is not Vendor.NVIDIA or device.capability in _FULL_RATE
    return _BYTES_FACTOR if has_full_rate else 0.1


def _fact(trace: Trace, rows: IntArray, fact: object) -> BoolArray:
    return np.array(of_each(trace, rows, fact), dtype=np.bool_)  # pyright: ignore[reportArgumentType]


PATTERN = Pattern(
    code="TAP405",
    slug="float64-leak",
    title="float64 among float32",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="precision",
)
