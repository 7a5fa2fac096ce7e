"""tf32-off: fp32 matrix products run on the plain cores although the device multiplies TF32.

Why it is slow: from Ampere on, tensor cores take fp32 tensors and round their inputs to TF32, several times faster;
PyTorch leaves this off for matrix products (and on for convolutions).
Trace: `sgemm` kernels, no tensor-core ones, on compute capability 8.0 or later.
Edit: those kernels take the time of TF32 ones at half of their peak, not below 0.35 nor above 0.8 of the recorded time.
Gate: older and other makers' devices, the CPU; matrix-vector products, which are bound by memory; bf16 runs have no
such kernels; runs that noted TF32 as allowed, whose products have other reasons for the plain cores.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.edit import Edit, Scale
from ..timeline.model import KernelClass, Timeline, Vendor
from ..timeline.roots import by_model_call
from ..timeline.select import count_per_step, device_rows, events_of, in_typical_step
from ..timeline.transfers import name_contains
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .precision import of_class, plain_matrix_kernels, share_of_kernel_time, switches

_PEAK_SHARE = 0.5
_FACTOR_RANGE = (0.35, 0.8)
_UNKNOWN_FACTOR = 0.5
_NOTICEABLE_SHARE = 0.005
_SURE, _LIKELY = 0.98, 0.9
"""With and without the recording run's word that TF32 was off."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model call site."""
    is_allowed = switches(timeline).matmul_tf32
    if not timeline.device.has_tf32 or timeline.device.vendor is not Vendor.NVIDIA or is_allowed:
        return
    products = of_class(timeline, plain_matrix_kernels(timeline, device_rows(timeline)), (KernelClass.GEMM_SIMT,))
    products = products[~name_contains(timeline, products, "gemv") & ~name_contains(timeline, products, "dot_kernel")]
    share = share_of_kernel_time(timeline, products)
    if share < _NOTICEABLE_SHARE:
        return
    factor = _factor(timeline)
    occurrences = [
        Occurrence(anchor, Edit(scales=(Scale(rows, factor),)), rows)
        for anchor, rows in by_model_call(timeline, products)
    ]
    evidence = (
        Evidence(
            "kernels",
            "fp32 matrix products on plain cores per step",
            count_per_step(timeline, products),
            "",
            events_of(timeline, in_typical_step(timeline, products)),
        ),
        Evidence("share", "their share of kernel time", round(100 * share), "%"),
        Evidence("factor", "time in TF32 over fp32, by the peaks", factor, ""),
    )
    noted = (Evidence("switch", "TF32 for products, by the recording run", "off", ""),) if is_allowed is False else ()
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="fp32 matrix products leave TF32 unused",
            remedy="TF32",
            occurrences=group,
            evidence=(*evidence, *noted),
            probability=_SURE if noted else _LIKELY,
        )


def _factor(timeline: Timeline) -> float:
    fp32, tf32 = timeline.device.fp32_tflops, timeline.device.tf32_tflops
    if np.isnan(fp32) or np.isnan(tf32):
        return _UNKNOWN_FACTOR
    return round(float(np.clip(fp32 / (tf32 * _PEAK_SHARE), *_FACTOR_RANGE)), 2)


PATTERN = Pattern(
    code="TAP402",
    slug="tf32-off",
    title="TF32 is off",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("device",),
    group="precision",
    stage=Stage.HARDWARE,
)
