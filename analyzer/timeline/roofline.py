"""Where each operator stands under the roofline: what its device could do at best with its FLOPs per byte.

Bytes are the least that has to move, from the shapes; where hardware counters were read of all of an operator's
kernels, they are what really went to and from the memory.

Device events take the position of the operator whose work they do: the innermost one round their launch whose cost is
known. Of a CPU's peaks nothing is known, so there only intensity and rate are filled in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, Category, FloatArray, Int8Array, Int32Array, IntArray
from .columns import number_by_name
from .counters import Figure, counted
from .kernel_names import Precision, decode
from .memo import once
from .model import Device, Timeline
from .tree import enclosing


class Bound(IntEnum):
    """Which side of the roofline's ridge an operator is on."""

    UNKNOWN = 0
    MEMORY = 1
    COMPUTE = 2


@dataclass(frozen=True, slots=True)
class Roofline:
    """Positions of operators. Arrays have shape (n,); NaN, UNKNOWN or NONE where there is nothing to say."""

    op: Int32Array
    """For a device row the operator whose cost it shares; for a costed operator itself."""
    time_ns: IntArray
    """Of a costed operator: the device time of its work, on the CPU its duration; 0 for other rows."""
    intensity: FloatArray
    """FLOPs per byte moved."""
    achieved_tflops: FloatArray
    attainable_tflops: FloatArray
    """The lower of the device's peak in the operator's precision and of what its memory can feed."""
    best_ns: FloatArray
    """The least time that the device could take: for its arithmetic or its memory traffic, whichever is longer."""
    bound: Int8Array
    """`Bound`."""

    def share_of_roof(self, row: int) -> float:
        """Best possible over measured time of an operator, 1 at the roof; NaN where unknown."""
        return float(self.best_ns[row] / self.time_ns[row]) if self.time_ns[row] else float("nan")


@once
def place(timeline: Timeline) -> Roofline:
    """Positions of all operators whose costs are known and that took time."""
    trace, costs, size = timeline.trace, timeline.costs, len(timeline.trace)
    costed = np.isfinite(costs.flops)
    owner = enclosing(timeline.tree.parent, costed)
    op = np.where(costed, np.arange(size), NONE).astype(np.int32)
    time_ns = np.zeros(size, dtype=np.int64)
    precision = np.where(costed, _recorded_precision(timeline, costed), Precision.UNKNOWN)
    if timeline.is_cpu_only:
        time_ns[costed] = trace.dur_ns[costed]
    else:
        rows = trace.rows(*DEVICE_CATEGORIES)
        launching = timeline.launches.op[rows]
        op[rows] = np.where(launching >= 0, owner[launching], NONE)
        owned = rows[op[rows] >= 0]
        np.add.at(time_ns, op[owned], trace.dur_ns[owned])
        _take_kernel_precision(timeline, precision, op)
    busy = costed & (time_ns > 0)
    moved = _measured_bytes(timeline, op, costs.bytes)
    flops, moved = np.where(busy, costs.flops, np.nan), np.where(busy, moved, np.nan)
    peak = _peaks(timeline.device)[precision]
    with np.errstate(divide="ignore", invalid="ignore"):
        intensity = flops / moved
        fed = intensity * timeline.device.memory_gb_per_s / 1e3
        attainable = np.minimum(peak, fed)
        achieved = flops / time_ns / 1e3
    best_ns = np.maximum(flops / peak / 1e3, moved / timeline.device.memory_gb_per_s)
    bound = np.where(np.isnan(attainable), Bound.UNKNOWN, np.where(fed < peak, Bound.MEMORY, Bound.COMPUTE))
    return Roofline(op, time_ns, intensity, achieved, attainable, best_ns, bound.astype(np.int8))


def _measured_bytes(timeline: Timeline, op: Int32Array, modelled: FloatArray) -> FloatArray:
    """`modelled`, with the bytes by hardware counters where all of an operator's kernels have them."""
    found = counted(timeline)
    moved = found.values[:, Figure.DRAM_BYTES]
    known = found.rows[~np.isnan(moved) & (op[found.rows] >= 0)]
    if not len(known):
        return modelled
    rows = timeline.trace.rows(Category.KERNEL)
    rows = rows[op[rows] >= 0]
    total = np.zeros(len(modelled))
    np.add.at(total, op[known], moved[np.searchsorted(found.rows, known)])
    kernels = np.bincount(op[rows], minlength=len(modelled))
    is_whole = (np.bincount(op[known], minlength=len(modelled)) == kernels) & (kernels > 0)
    return np.where(is_whole, total, modelled)


def _recorded_precision(timeline: Timeline, costed: np.ndarray) -> IntArray:
    """Precision of each operator by the recorded type of its first tensor: half or fp32."""
    trace = timeline.trace
    precision = np.full(len(trace), Precision.FP32, dtype=np.int64)
    rows = np.flatnonzero(costed)
    if not len(rows):
        return precision
    used, place_of = np.unique(trace.inputs[rows], return_inverse=True)
    is_half = np.array([_is_half(trace.input_table[i].types) for i in used.tolist()], dtype=bool)
    precision[rows[is_half[place_of]]] = Precision.HALF
    return precision


def _is_half(types: tuple[str, ...]) -> bool:
    return next((t for t in types if t not in ("", "Scalar", "ScalarList")), "") in ("c10::Half", "c10::BFloat16")


def _take_kernel_precision(timeline: Timeline, precision: IntArray, op: Int32Array) -> None:
    """Where a matrix kernel's name tells its precision (TF32 on fp32 tensors), that holds for its operator."""
    trace = timeline.trace
    rows = trace.rows(Category.KERNEL)
    told = number_by_name(trace, rows, lambda name: decode(name).precision)
    telling = (told != Precision.UNKNOWN) & (op[rows] >= 0)
    precision[op[rows[telling]]] = told[telling]


def _peaks(device: Device) -> FloatArray:
    """TFLOP/s by `Precision`; NaN where unknown."""
    peaks = np.full(len(Precision), np.nan)
    peaks[[Precision.UNKNOWN, Precision.FP32]] = device.fp32_tflops
    peaks[Precision.TF32] = device.tf32_tflops
    peaks[Precision.HALF] = device.half_tflops
    return peaks
