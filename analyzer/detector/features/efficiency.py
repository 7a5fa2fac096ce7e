"""What the work achieves: FLOP/s and bytes/s, against the device's peak and the best that the trace itself shows.

Of a CPU's peaks nothing is known, so there only the trace's own best rates are a measure.
"""

from __future__ import annotations

import numpy as np

from ...timeline.model import KernelClass
from ...trace.model import FloatArray, Int32Array, IntArray, OpInputs
from ..model import Feature
from . import families
from .figures import NAN, among, log_count, log_ratio, mean, pct, table
from .inputs import Kind
from .links import costed_ops
from .view import View

_K = KernelClass
_GROUPS: tuple[tuple[str, tuple[KernelClass, ...], str], ...] = (
    ("gemm", (_K.GEMM_SIMT,), "matrix products"),
    ("convolution", (_K.CONV_SIMT,), "convolutions"),
    ("attention", (_K.ATTENTION,), "fused attention"),
)
_MEMORY_BOUND = (_K.ELEMENTWISE, _K.NORM, _K.SOFTMAX, _K.COPY, _K.REDUCE, _K.POOL, _K.INDEX)
_BEST_QUANTILE = 0.9
_MULTIPLE = 8
_SMALL_FLOPS = 1e6

FEATURES: tuple[Feature, ...] = (
    Feature("efficiency.flops", "log10 MFLOP", "Arithmetic of the window's operators."),
    Feature("efficiency.rate", "log10 GFLOP/s", "Arithmetic over the time it takes."),
    Feature("efficiency.intensity", "log10 FLOP/byte", "Whether arithmetic or memory should set the pace."),
    Feature("efficiency.roof", "% of the roofline", "Least possible time over the time taken; device only."),
    Feature("efficiency.peak", "% of the device's best peak", "FLOP/s against its fastest precision."),
    *(
        Feature(f"efficiency.{name}_best", "log10 1", f"Rate of {what} against the trace's best.")
        for name, _, what in _GROUPS
    ),
    Feature("efficiency.memory_rate", "log10 GB/s", "Bytes per time of pointwise work, norms, copies and reductions."),
    Feature(
        "efficiency.memory_best", "log10 1", "The same against the trace's best: small or strided tensors are slow."
    ),
    Feature("efficiency.memory_peak", "% of the device's", "The same against the device's memory bandwidth."),
    Feature("efficiency.odd_products", "% of product time", "A dimension is no multiple of 8: off the fast kernels."),
    Feature("efficiency.odd_product_rate", "log10 1", "Rate of those against the trace's best."),
    Feature("efficiency.small_products", "% of products", "Under 1 MFLOP: split or batched too little."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    rows, took_ns, window = costed_ops(view)
    flops, moved = view.timeline.costs.flops[rows], view.timeline.costs.bytes[rows]
    work = _WORK[view.by_name(rows, families.family_of)]
    kind = view.input_facts.column("kind", rows)
    busy = took_ns > 0
    total_flops, total_bytes = view.sum(window, flops), view.sum(window, moved)
    costed_ns = view.sum(window, took_ns)
    device = view.timeline.device
    peak = np.where(kind == Kind.HALF, device.half_tflops, device.fp32_tflops) * 1e3
    least_ns = np.fmax(flops / peak, moved / device.memory_gb_per_s)
    best_peak = np.fmax(device.half_tflops, device.fp32_tflops) * 1e3
    columns: dict[str, FloatArray] = {}
    for name, classes, _ in _GROUPS:
        which = busy & among(work, classes)
        columns[f"{name}_best"] = _rates(view, window, which, flops, took_ns)[1]
    columns["memory_rate"], columns["memory_best"] = _rates(
        view, window, busy & among(work, _MEMORY_BOUND), moved, took_ns
    )
    found = table(
        FEATURES,
        flops=log_count(total_flops / 1e6),
        rate=log_ratio(view.sum(window, flops * busy), costed_ns),
        intensity=log_ratio(total_flops, total_bytes),
        roof=_of_whole(view.sum(window, least_ns * busy), costed_ns),
        peak=_of_whole(total_flops / best_peak, costed_ns),
        memory_peak=100.0 * 10 ** columns["memory_rate"] / device.memory_gb_per_s,
        **columns,
        **_products(view, rows, took_ns, work),
    )
    return found if view.has_shapes else np.full_like(found, NAN)


def _of_whole(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Per cent, NaN where nothing is known; above 1,000 a cost or a peak must be wrong."""
    return np.minimum(100.0 * mean(part, whole), 1e3)


def _rates(
    view: View, window: Int32Array, which: np.ndarray, amount: FloatArray, took_ns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """log10 of amount per ns by window (GFLOP/s, GB/s), and the same against the trace's best."""
    window, amount, took_ns = window[which], amount[which], took_ns[which]
    done, time_ns = view.sum(window, amount), view.sum(window, took_ns)
    return log_ratio(done, time_ns), log_ratio(done, time_ns * best_rate(amount, took_ns))


def best_rate(amount: FloatArray, took_ns: FloatArray) -> float:
    """The rate that nine tenths of the work stay below: calls that were held up do not count. NaN of nothing."""
    if not len(amount):
        return NAN
    rate = amount / took_ns
    order = np.argsort(rate)
    passed = np.cumsum(amount[order])
    return float(rate[order][min(int(np.searchsorted(passed, _BEST_QUANTILE * passed[-1])), len(rate) - 1)])


def _products(view: View, rows: IntArray, took_ns: FloatArray, work: IntArray) -> dict[str, FloatArray]:
    """Columns about matrix products, by name."""
    which = (work == _K.GEMM_SIMT) & (took_ns > 0)
    rows, took_ns = rows[which], took_ns[which]
    window, flops = view.windows.of[rows], view.timeline.costs.flops[rows]
    is_odd = view.facts(rows, _is_odd, 1)[:, 0]
    count, time_ns = view.count(window), view.sum(window, took_ns)
    odd_flops, odd_ns = view.sum(window, flops * is_odd), view.sum(window, took_ns * is_odd)
    return {
        "odd_products": pct(odd_ns, time_ns),
        "odd_product_rate": log_ratio(odd_flops, odd_ns * best_rate(flops, took_ns)),
        "small_products": pct(view.sum(window, flops < _SMALL_FLOPS), count),
    }


def _is_odd(name: str, inputs: OpInputs) -> tuple[bool]:
    """Whether a dimension that the fast kernels want in multiples of 8 is none."""
    first = 1 if "add" in name else 0
    left, right = inputs.shape(first), inputs.shape(first + 1)
    inner = (*left[-1:], *right[-1:]) if len(right) > 1 else left[-1:]
    return (any(size > 1 and size % _MULTIPLE for size in inner),)


_WORK = np.array([int(family.work) for family in families.FAMILIES])
