"""Positions under the roofline."""

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.roofline import Bound, Roofline, place
from torchtraceap.analyzer.trace.model import Trace

SIZE = 4096
GEMM_FLOPS = 2 * SIZE**3


def matmul(kernel: str, kernel_us: float, dtype: str) -> tuple[Trace, Roofline, int, int]:
    """An A100's `aten::mm` of two square matrices inside `aten::matmul`."""
    builder = TraceBuilder()
    shapes = ((SIZE, SIZE), (SIZE, SIZE))
    with builder.op("aten::matmul", shapes=shapes), builder.op("aten::mm", shapes=shapes, types=(dtype, dtype)) as op:
        device = builder.kernel(kernel, us=kernel_us)
    trace = builder.build()
    return trace, place(build_timeline(trace)), row_of(trace, op), row_of(trace, device)


@pytest.mark.parametrize(
    ("kernel", "dtype", "peak"),
    [
        ("ampere_sgemm_128x64_nn", "float", 19.5),
        ("cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4", "float", 156),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_nn", "c10::BFloat16", 312),
    ],
)
def test_large_gemm_is_bound_by_the_peak_of_its_precision(kernel: str, dtype: str, peak: float) -> None:
    _, roofline, op, device = matmul(kernel, 10_000, dtype)
    assert roofline.op[device] == op
    assert roofline.time_ns[op] == 10_000_000
    assert roofline.attainable_tflops[op] == peak
    assert roofline.achieved_tflops[op] == pytest.approx(GEMM_FLOPS / 1e-2 / 1e12)
    assert roofline.bound[op] == Bound.COMPUTE
    assert roofline.share_of_roof(op) == pytest.approx(GEMM_FLOPS / peak / 1e12 / 1e-2)


def test_pointwise_work_is_bound_by_memory() -> None:
    builder = TraceBuilder()
    with builder.op("aten::copy_", shapes=((1 << 20,), (1 << 20,)), types=("float", "float")) as op:
        builder.kernel("void at::native::elementwise_kernel<direct_copy_kernel_cuda>", us=10)
    trace = builder.build()
    roofline = place(build_timeline(trace))
    row = row_of(trace, op)
    assert roofline.bound[row] == Bound.MEMORY
    assert roofline.share_of_roof(row) == pytest.approx((2 * 4 * 2**20 / 1555e9) / 10e-6)


def test_on_the_cpu_rates_are_known_and_the_roof_is_not() -> None:
    builder = TraceBuilder()
    op = builder.leaf("aten::mm", us=100, shapes=((64, 64), (64, 64)), types=("float", "float"))
    trace = builder.build()
    roofline = place(build_timeline(trace))
    row = row_of(trace, op)
    assert roofline.achieved_tflops[row] == pytest.approx(2 * 64**3 / 100e-6 / 1e12)
    assert np.isnan(roofline.share_of_roof(row)) and roofline.bound[row] == Bound.UNKNOWN


def test_a_trace_without_shapes_has_no_positions() -> None:
    builder = TraceBuilder()
    builder.leaf("aten::mm", kernel="ampere_sgemm_128x64_nn")
    trace = builder.build()
    roofline = place(build_timeline(trace))
    assert not roofline.time_ns.any() and (roofline.op < 0).all()


def test_fp32_convolutions_of_a_recorded_trace_run_near_their_roof() -> None:
    """cuDNN's fp32 convolutions on a V100 reach 60 to 100 % of its peak, pointwise work as much of its memory's."""
    timeline = shared_timeline("traces/S01_kineto_resnet50_w0_v100.json.gz")
    roofline = place(timeline)
    for name, bound in (("aten::cudnn_convolution", Bound.COMPUTE), ("aten::threshold_backward", Bound.MEMORY)):
        rows = timeline.trace.rows_named([name])
        rows = rows[roofline.time_ns[rows] > 0]
        share = roofline.best_ns[rows].sum() / roofline.time_ns[rows].sum()
        assert 0.6 < share < 1.0
        assert np.median(roofline.bound[rows]) == bound
