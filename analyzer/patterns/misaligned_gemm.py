"""misaligned-gemm: matrix products on tensor cores with a dimension that is no multiple of 16 bytes.

Why it is slow: tensor-core kernels load 16 bytes at a time, 8 halves or 4 floats. With a row of 3137 halves they must
load element by element, through an older and slower kernel; before Ampere and cuBLAS 11 they leave the tensor cores.
Trace: matrix kernels whose name says `align1` or `align2`; on Volta and Turing half-precision kernels of the plain
cores.
Edit: what such a kernel would take at 60 % of the tensor cores' peak or 80 % of the memory's, whichever is longer, by
the recorded shapes; never below 0.35 nor above 0.8 of the recorded time, and 0.6 of it where shapes are missing.
Gate: kernels of the plain cores, which are `align1` always; `align4` and the rows of the left operand, which cost
little; recorded shapes and strides that are all multiples; a small share of the step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.kernel_names import Precision
from ..timeline.kernels import kernel_name
from ..timeline.model import KernelClass, Timeline, Vendor
from ..timeline.op_inputs import element_bytes
from ..timeline.select import (
    count_per_step,
    device_rows,
    events_of,
    in_typical_step,
    is_noticeable,
    outer_op,
)
from ..trace.model import NONE, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .precision import of_class

_UNALIGNED = (1, 2)
_WIDE_BYTES = 16
_PEAK_SHARE = 0.6
_MEMORY_SHARE = 0.8
_FACTOR_RANGE = (0.35, 0.8)
_UNKNOWN_FACTOR = 0.6
_BATCHED = ("aten::bmm", "aten::baddbmm", "aten::baddbmm_")


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that multiplies."""
    if timeline.is_cpu_only or not timeline.device.has_tensor_cores or timeline.device.vendor is not Vendor.NVIDIA:
        return
    rows = _unaligned_kernels(timeline)
    if not is_noticeable(timeline, rows):
        return
    for occurrences in by_site(timeline, _occurrences(timeline, rows)):
        kernels = np.sort(np.concatenate([occurrence.cost_rows for occurrence in occurrences]))
        operators = timeline.launches.op[kernels]
        is_batched = is_among(operators, timeline.trace.rows_named(_BATCHED)).any()
        odd = sorted({size for op in operators.tolist() for size in _odd_sizes(timeline, op)})
        yield Candidate(
            what="a matrix product has a dimension that tensor cores cannot load 16 bytes at a time",
            remedy="padding it (fused attention pads by itself)" if is_batched else "padding it to a multiple of 8",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "kernels",
                    "matrix kernels with unaligned loads per step",
                    count_per_step(timeline, kernels),
                    "",
                    events_of(timeline, in_typical_step(timeline, kernels)),
                ),
                Evidence("sizes", "sizes that are no multiple", ", ".join(map(str, odd)) or "not recorded", ""),
            ),
            probability=0.9 if odd else 0.7,
        )


def _unaligned_kernels(timeline: Timeline) -> IntArray:
    """Matrix kernels that load their operands element by element, for which the recorded sizes give a reason."""
    device = of_class(timeline, device_rows(timeline), (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT))
    names, first, inverse = np.unique(timeline.trace.name[device], return_index=True, return_inverse=True)
    if not len(names):
        return device
    device = device[np.array([_is_unaligned(timeline, int(device[i])) for i in first], dtype=np.bool_)[inverse]]
    operators = timeline.launches.op[device]
    explained = [op == NONE or _may_be_odd(timeline, op) for op in operators.tolist()]
    return device[np.array(explained, dtype=np.bool_)]


def _is_unaligned(timeline: Timeline, kernel: int) -> bool:
    told = kernel_name(timeline.trace, kernel)
    if timeline.kernel_class[kernel] == KernelClass.GEMM_SIMT:
        return told.precision is Precision.HALF and timeline.device.capability[0] == 7
    return told.alignment in _UNALIGNED and told.precision in (Precision.HALF, Precision.TF32)


def _may_be_odd(timeline: Timeline, op: int) -> bool:
    """Whether an operator's sizes explain unaligned loads, or were not recorded."""
    return not timeline.trace.inputs_of(op).dims or bool(_odd_sizes(timeline, op))


def _odd_sizes(timeline: Timeline, op: int) -> set[int]:
    """Sizes and strides of a product's operands, along which it reads or writes, that are no multiple of 16 bytes."""
    if op == NONE:
        return set()
    inputs = timeline.trace.inputs_of(op)
    matrices = [argument for argument in range(len(inputs.dims)) if len(inputs.shape(argument)) >= 2][-2:]
    if len(matrices) < 2:
        return set()
    unit = max(_WIDE_BYTES // element_bytes(inputs, matrices[1]), 1)
    lengths = [inputs.shape(matrices[1])[-1], *(length for one in matrices for length in _read_along(inputs, one))]
    return {length for length in lengths if length % unit}


def _read_along(inputs: OpInputs, argument: int) -> tuple[int, ...]:
    """The length of an operand's dense rows and the step from one to the next; without strides, its last size."""
    shape, strides = inputs.shape(argument)[-2:], inputs.stride(argument)[-2:]
    if len(strides) < 2:
        return shape[1:]
    return (shape[0], strides[1]) if strides[0] == 1 and strides[1] != 1 else (shape[1], strides[0])


def _occurrences(timeline: Timeline, kernels: IntArray) -> Iterator[Occurrence]:
    """Kernels by the forward operator that Python called."""
    launches, forward = timeline.launches.op, timeline.forward_op
    groups: dict[int, list[int]] = {}
    for kernel in kernels.tolist():
        source = int(forward[kernel]) if forward[kernel] != NONE else int(launches[kernel])
        groups.setdefault(kernel if source == NONE else outer_op(timeline, source), []).append(kernel)
    for anchor, group in groups.items():
        rows = np.array(group, dtype=np.int64)
        scales = tuple(Scale(rows[i : i + 1], _factor(timeline, kernel)) for i, kernel in enumerate(group))
        yield Occurrence(anchor, Edit(scales=scales), rows)


def _factor(timeline: Timeline, kernel: int) -> float:
    """Time of an aligned kernel for the same product over the recorded time."""
    op = int(timeline.launches.op[kernel])
    flops = float(timeline.costs.flops[op]) if op != NONE else np.nan
    is_half = kernel_name(timeline.trace, kernel).precision is Precision.HALF
    peak = timeline.device.half_tflops if is_half else timeline.device.tf32_tflops
    best_ns = max(
        flops / (peak * _PEAK_SHARE) / 1e3,
        float(timeline.costs.bytes[op]) / (timeline.device.memory_gb_per_s * _MEMORY_SHARE) if op != NONE else 0.0,
    )
    if np.isnan(best_ns):
        return _UNKNOWN_FACTOR
    return round(float(np.clip(best_ns / max(int(timeline.trace.dur_ns[kernel]), 1), *_FACTOR_RANGE)), 2)


PATTERN = Pattern(
    code="TAP403",
    slug="misaligned-gemm",
    title="Matrix dimensions that do not fit tensor cores",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device",),
    group="precision",
)
