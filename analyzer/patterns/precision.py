"""What the two rules about number formats have in common: matrix kernels that leave the tensor cores idle."""

from __future__ import annotations

import numpy as np

from ..timeline.columns import is_among
from ..timeline.kernel_names import Precision
from ..timeline.kernels import kernel_name
from ..timeline.model import KernelClass, Timeline
from ..timeline.select import device_rows
from ..trace.model import IntArray
from ..trace.recording import Precision as Switches

POINTWISE = (KernelClass.ELEMENTWISE, KernelClass.NORM, KernelClass.POOL, KernelClass.SOFTMAX, KernelClass.LAYOUT)


def switches(timeline: Timeline) -> Switches:
    """The numeric switches that the recording run noted; all unknown for a trace of another origin."""
    recording = timeline.trace.recording
    return recording.precision if recording is not None else Switches()


def plain_matrix_kernels(timeline: Timeline, device: IntArray) -> IntArray:
    """Those device rows that multiply fp32 matrices or convolve fp32 images on the plain cores."""
    rows = of_class(timeline, device, (KernelClass.GEMM_SIMT, KernelClass.CONV_SIMT))
    return of_precision(timeline, rows, (Precision.FP32, Precision.UNKNOWN))


def of_class(timeline: Timeline, device: IntArray, classes: tuple[KernelClass, ...]) -> IntArray:
    """Those device rows that are of one of the classes."""
    return device[is_among(timeline.kernel_class[device], classes)]


def of_precision(timeline: Timeline, device: IntArray, precisions: tuple[Precision, ...]) -> IntArray:
    """Those device rows whose name says one of the precisions."""
    names, first, inverse = np.unique(timeline.trace.name[device], return_index=True, return_inverse=True)
    if not len(names):
        return device
    says = np.array([kernel_name(timeline.trace, int(device[i])).precision in precisions for i in first])
    return device[says[inverse]]


def share_of_kernel_time(timeline: Timeline, rows: IntArray) -> float:
    """Duration of `rows` over that of all kernels of the steady steps, communication and copies left out; 0..1."""
    device = device_rows(timeline)
    device = device[timeline.kernel_class[device] < KernelClass.COMMUNICATION]
    total = timeline.trace.dur_ns[device].sum()
    return float(timeline.trace.dur_ns[rows].sum() / total) if total else 0.0
