"""How fast this recording multiplies matrices: what slow convolutions are held to."""

from __future__ import annotations

import numpy as np

from ..timeline.convolution_calls import flops_in, work_ns
from ..timeline.model import Timeline
from ..timeline.select import ops_named
from ..trace.model import FloatArray, IntArray

_PRODUCTS = ("aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul")
_MIN_FLOPS = 1e6
"""Smaller products spend their time on being called."""
_PEAK_SHARE = 0.5
"""Of a device's peak, that ordinary layers reach."""
HALF_TYPES = ("c10::Half", "c10::BFloat16")


def product_rate(timeline: Timeline, dtype: str) -> float:
    """The usual GFLOP/s of the steady steps' matrix products; NaN where nothing tells. Without products of some size,
    half of the device's peak for tensors of `dtype`."""
    rows = ops_named(timeline, _PRODUCTS)
    flops, time_ns = np.nan_to_num(flops_in(timeline, rows)), work_ns(timeline, rows)
    counted = (flops >= _MIN_FLOPS) & (time_ns > 0)
    if counted.any():
        return usual_rate(flops[counted], time_ns[counted])
    return _PEAK_SHARE * peak_tflops(timeline, dtype) * 1000.0


def usual_rate(flops: FloatArray, time_ns: IntArray) -> float:
    """GFLOP/s at which half of the work is done, of at least one call.

    Calls during which the thread was held up, as on a busy machine, leave it as it is; they lower a mean.
    """
    rate = flops / time_ns
    order = np.argsort(rate)
    done = np.cumsum(flops[order])
    return float(rate[order][np.searchsorted(done, done[-1] / 2)])


def peak_tflops(timeline: Timeline, dtype: str) -> float:
    """The device's peak for convolutions and products of tensors of `dtype`; NaN where unknown."""
    device = timeline.device
    if dtype in HALF_TYPES:
        return device.half_tflops
    return device.tf32_tflops if device.has_tf32 else device.fp32_tflops
