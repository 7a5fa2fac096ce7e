"""What one fused call would save over attention in separate passes.

Everything between the products goes, and the dense copies of operands inside them. The products stay. On the CPU
they run at about the rate of the fused kernels: measured with torch 2.13, one thread, the fused call takes 0.87-1.05 of
the two products (0.9 from N 256 on); below N 128 the softmax stays too (1.5 of the products at N 64), so 64 / N of it
is kept. The CPU's backward gains what the passes over the scores take (from N 128 on 0.62-0.9 of it all with heads of
32, 0.9-1.0 with 64), and loses below: 1.05-1.3, and 1.6-1.8 below N 16. On a device the fused kernel is
held to 40 % of the half-precision peak where the tensors are half, and never takes less than a launch nor more than
the products took.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ..timeline.attention_passes import Passes, on_scores, scores_size
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import KernelClass, Timeline
from ..timeline.select import backward_of, inside, launched_by, outermost, steady
from ..trace.model import NONE, IntArray
from .base import Occurrence

_CPU_TILE = 64
"""Query-key tile below which the CPU's fused kernel keeps the softmax's cost."""
_CPU_UNKNOWN_SOFTMAX = 0.25
_CPU_SMALL = 128
_CPU_SMALL_BACKWARD = 1.2
_CPU_TINY = 16
_CPU_TINY_BACKWARD = 1.7
_CPU_LARGE = 256
_CPU_LARGE_PRODUCTS = 0.9
_FUSED_PEAK_SHARE = 0.4
FUSED_BACKWARD_PRODUCTS = 2.5
"""FLOPs of the fused backward over those of the forward: five products against two."""
_KERNEL_FLOOR_US = 5.0


def fused_occurrence(timeline: Timeline, attention: Passes, rows: IntArray, backward: IntArray) -> Occurrence:
    """The passes of one attention, `rows`, with the edit that one fused call amounts to."""
    if timeline.is_cpu_only:
        cost_rows = np.sort(np.concatenate([rows, *backward_of(timeline, rows, backward)]))
        return Occurrence(attention.scores, _edit_on_cpu(timeline, attention, backward), cost_rows)
    return _on_device(timeline, attention, rows, backward)


def _edit_on_cpu(timeline: Timeline, attention: Passes, backward: IntArray) -> Edit:
    tokens = scores_size(timeline, attention)
    kept = round(min(1.0, _CPU_TILE / tokens[-1]), 3) if tokens else _CPU_UNKNOWN_SOFTMAX
    scales = [Scale(np.array([attention.softmax]), kept)]
    if tokens and tokens[-1] >= _CPU_LARGE:
        scales.append(Scale(np.array([attention.scores, attention.values]), _CPU_LARGE_PRODUCTS))
    glue = on_scores(timeline, attention)
    removed = [glue, _copies_in_products(timeline, attention)]
    if tokens and tokens[-1] < _CPU_SMALL:
        factor = _CPU_TINY_BACKWARD if tokens[-1] < _CPU_TINY else _CPU_SMALL_BACKWARD
        heavy = np.array([attention.scores, attention.softmax, attention.values])
        scales.append(Scale(np.concatenate(backward_of(timeline, heavy, backward)), factor))
    elif tokens:
        scales.append(Scale(np.concatenate(backward_of(timeline, np.array([attention.softmax]), backward)), kept))
        removed += backward_of(timeline, glue, backward)
    return Edit(scales=tuple(scales), removed_ops=np.sort(np.concatenate(removed)))


def _copies_in_products(timeline: Timeline, attention: Passes) -> IntArray:
    """Copies that the products make of their operands first, to hand dense batches to the matrix routine."""
    copies = steady(timeline, timeline.trace.rows_named(("aten::contiguous", "aten::clone", "aten::copy_")))
    return outermost(timeline, copies[inside(timeline, copies, np.array([attention.scores, attention.values])) != NONE])


def _on_device(timeline: Timeline, attention: Passes, rows: IntArray, backward: IntArray) -> Occurrence:
    trace = timeline.trace
    launched = launched_by(timeline, rows)
    scores, rest = launched[0], np.concatenate(launched[1:])
    caused = np.concatenate(backward_of(timeline, rows, backward))
    backward_device = np.concatenate(launched_by(timeline, caused)) if len(caused) else caused
    query, key = (trace.inputs_of(attention.scores).shape(i) for i in (0, 1))
    flops = 4.0 * prod(query) * key[-1] if query and key else float("nan")
    dtype = trace.inputs_of(attention.scores).dtype(0)
    forward_us = fused_us(timeline, np.concatenate([scores, rest]), flops, dtype)
    scales = [Scale(scores, _ratio(timeline, scores, forward_us))]
    if len(backward_device):
        backward_us = fused_us(timeline, backward_device, flops, dtype, FUSED_BACKWARD_PRODUCTS)
        scales.append(Scale(backward_device, _ratio(timeline, backward_device, backward_us)))
    edit = Edit(scales=tuple(scales), removed_ops=rows[rows != attention.scores])
    return Occurrence(attention.scores, edit, np.concatenate([scores, rest, backward_device]))


def fused_us(timeline: Timeline, device: IntArray, flops: float, dtype: str, products: float = 1.0) -> float:
    """What one fused kernel takes for the work of `device`, kernels in separate passes; `products` times `flops` of it.

    No more than the matrix kernels among them took.
    """
    classes = (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT)
    matrix = device[is_among(timeline.kernel_class[device], classes)]
    products_us = float(timeline.trace.dur_ns[matrix].sum()) / 1000.0
    peak = timeline.device.half_tflops
    if np.isnan(flops) or np.isnan(peak) or dtype not in ("c10::Half", "c10::BFloat16"):
        return products_us
    at_peak_us = flops / (peak * 1e12 * _FUSED_PEAK_SHARE) * 1e6
    return min(products_us, max(at_peak_us, _KERNEL_FLOOR_US) * products)


def _ratio(timeline: Timeline, rows: IntArray, wanted_us: float) -> float:
    recorded_us = float(timeline.trace.dur_ns[rows].sum()) / 1000.0
    return round(wanted_us / recorded_us, 2) if recorded_us > 0 else 1.0
