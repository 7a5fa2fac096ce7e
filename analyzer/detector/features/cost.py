"""What a window costs, and what kind of work the time goes into."""

from __future__ import annotations

import numpy as np

from ...timeline.kernel_names import Precision, decode
from ...timeline.model import KernelClass
from ...trace.model import FloatArray
from ..model import Feature
from .figures import among, known, log_count, log_ratio, log_us, pct, table
from .view import MATRIX, View

_K = KernelClass
_CLASSES: tuple[tuple[str, tuple[KernelClass, ...], str], ...] = (
    ("gemm", (_K.GEMM_TENSOR_CORE, _K.GEMM_SIMT), "Matrix products."),
    ("convolution", (_K.CONV_TENSOR_CORE, _K.CONV_SIMT), "Convolutions."),
    ("layout", (_K.LAYOUT,), "Transposes that the library adds: the tensors lie the wrong way round."),
    ("attention", (_K.ATTENTION,), "Fused attention: what an unfused one lacks."),
    ("norm", (_K.NORM,), "Normalisation by its own operator."),
    ("softmax", (_K.SOFTMAX,), "Softmax on its own: attention in several passes has it."),
    ("elementwise", (_K.ELEMENTWISE,), "Pointwise work, bound by memory; long chains of it can be fused."),
    ("copy", (_K.COPY,), "Copies and casts that compute nothing."),
    ("reduce", (_K.REDUCE,), "Reductions: handwritten norms and metrics have many."),
    ("index", (_K.INDEX,), "Indexing, gathering, sorting."),
    ("optimizer", (_K.OPTIMIZER,), "Optimizer kernels over many tensors at once: what a per-parameter loop lacks."),
    ("memcpy", (_K.MEMCPY_HTOD, _K.MEMCPY_DTOH, _K.MEMCPY_DTOD, _K.MEMSET), "Copies and fills by the copy engines."),
)
_ALIGNED_ELEMENTS = 8
_PRECISIONS = (
    ("fp32", (Precision.FP32,), "Matrix work on the plain cores: several times slower than on tensor cores."),
    ("tf32", (Precision.TF32,), "fp32 data on tensor cores."),
    ("half", (Precision.HALF,), "fp16 or bf16."),
    ("fp64", (Precision.FP64,), "Double precision, which is rarely meant."),
)

FEATURES: tuple[Feature, ...] = (
    Feature("cost.host_share", "% of the step", "How much of the step's host time the window is."),
    Feature("cost.work_share", "% of all windows", "How much of the compute time (device; on the CPU operators)."),
    Feature("cost.host_time", "log10 us", "Length of the window on the host."),
    Feature("cost.work_time", "log10 us", "Compute time of the window."),
    Feature("cost.device_per_host", "log10 1", "Device work over host time: low where launches set the pace."),
    Feature("cost.kernels", "1 (log10(1 + x))", "Kernels, copies and fills."),
    Feature("cost.kernel_median", "log10 us", "Median device event: short ones are dominated by their launch."),
    Feature("cost.kernel_longest_share", "% of the device time", "Whether one kernel owns the window."),
    *(Feature(f"cost.{name}", "% of the compute time", why) for name, _, why in _CLASSES),
    *(Feature(f"cost.{name}", "% of matrix kernel time", why) for name, _, why in _PRECISIONS),
    Feature("cost.unaligned", "% of matrix kernel time", "Kernels for operands aligned to fewer than 8 elements."),
    Feature(
        "cost.fft_or_direct", "% of convolution time", "Algorithms that a search rarely picks: fft, naive, implicit."
    ),
    Feature("cost.naive", "% of matrix kernel time", "Fallback kernels: naive, slow_conv, im2col."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    window, took_ns, _, work_class = view.work
    by_class = np.bincount(window * len(_K) + work_class, took_ns, minlength=view.size * len(_K))
    by_class = by_class.reshape(view.size, len(_K))
    kernels, all_work = view.count(view.device_window), view.work_ns.sum()
    device_dur = view.trace.dur_ns[view.device].astype(np.float64)
    device = view.has_device
    return table(
        FEATURES,
        host_share=pct(view.host_ns, view.step_ns),
        work_share=100.0 * view.work_ns / all_work if all_work else 0.0,
        host_time=log_us(view.host_ns),
        work_time=log_us(view.work_ns),
        device_per_host=known(device, log_ratio(view.device_ns, view.host_ns)),
        kernels=known(device, log_count(kernels)),
        kernel_median=known(device, log_us(view.median_ns(view.device_window, view.trace.dur_ns[view.device]))),
        kernel_longest_share=known(device, pct(view.largest(view.device_window, device_dur), view.device_ns)),
        **{name: pct(by_class[:, list(classes)].sum(axis=1), view.work_ns) for name, classes, _ in _CLASSES},
        **_matrix_columns(view, device_dur),
    )


def _matrix_columns(view: View, took_ns: FloatArray) -> dict[str, FloatArray]:
    """Columns about matrix kernels, by name."""
    is_matrix = among(view.kernel_class, MATRIX)
    rows, window, took_ns = view.device[is_matrix], view.device_window[is_matrix], took_ns[is_matrix]
    total = view.sum(window, took_ns)
    precision = view.by_name(rows, lambda name: int(decode(name).precision))
    alignment = view.by_name(rows, lambda name: decode(name).alignment)
    work_class = view.kernel_class[is_matrix]
    is_convolution = among(work_class, (_K.CONV_TENSOR_CORE, _K.CONV_SIMT))
    is_odd = view.by_name(rows, _is_odd_algorithm) > 0
    is_naive = view.by_name(rows, _is_fallback) > 0

    def share(which: np.ndarray, whole: FloatArray = total) -> FloatArray:
        return known(view.has_device, pct(view.sum(window, took_ns * which), whole))

    return {
        **{name: share(among(precision, precisions)) for name, precisions, _ in _PRECISIONS},
        "unaligned": share((alignment > 0) & (alignment < _ALIGNED_ELEMENTS)),
        "fft_or_direct": share(is_odd & is_convolution, view.sum(window, took_ns * is_convolution)),
        "naive": share(is_naive),
    }


def _is_odd_algorithm(name: str) -> int:
    small = name.lower()
    return int(any(word in small for word in ("fft", "implicit_convolve", "implicit_precomp", "naive", "direct")))


def _is_fallback(name: str) -> int:
    small = name.lower()
    return int(any(word in small for word in ("naive", "slow_conv", "im2col", "col2im", "thnn", "conv_depthwise")))
