"""How fast this recording multiplies matrices: what slow convolutions are held to."""

from __future__ import annotations

import numpy as np

from ..timeline.convolution_calls import flops_in, work_ns
from ..timeline.model import Timeline
from ..timeline.select import ops_named

_PRODUCTS = ("aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul")
_MIN_FLOPS = 1e6
"""Smaller products spend their time on being called."""
_PEAK_SHARE = 0.5
"""Of a device's peak, that ordinary layers reach."""
HALF_TYPES = ("c10::Half", "c10::BFloat16")


def product_rate(timeline: Timeline, dtype: str) -> float:
    """GFLOP/s at which half of the work in matrix products of the steady steps is done; NaN where nothing tells.

    A product during which the thread was held up, as on a busy machine, leaves that rate as it is. Without products of
    some size, half of the device's peak for tensors of `dtype`.
    """
    rows = ops_named(timeline, _PRODUCTS)
    flops, time_ns = np.nan_to_num(flops_in(timeline, rows)), work_ns(timeline, rows)
    counted = (flops >= _MIN_FLOPS) & (time_ns > 0)
    if counted.any():
        work, rate = flops[counted], flops[counted] / time_ns[counted]
        order = np.argsort(rate)
        done = np.cumsum(work[order])
        return float(rate[order][np.searchsorted(done, done[-1] / 2)])
    return _PEAK_SHARE * peak_tflops(timeline, dtype) * 1000.0


def peak_tflops(timeline: Timeline, dtype: str) -> float:
    """The device's peak for convolutions and products of tensors of `dtype`; NaN where unknown."""
    device = timeline.device
    if dtype in HALF_TYPES:
        return device.half_tflops
    return device.tf32_tflops if device.has_tf32 else device.fp32_tflops
