"""Classes of device events, by name and by launching operator."""

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.kernels import classify_kernels, classify_name, kernel_name
from torchtraceap.analyzer.timeline.launches import build_launches
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import Category


def test_gemm_kernel_launched_by_a_convolution_is_convolution() -> None:
    builder = TraceBuilder()
    with builder.op("aten::cudnn_convolution"):
        inside = builder.kernel("volta_sgemm_128x64_nn", us=10)
    with builder.op("aten::mm"):
        outside = builder.kernel("volta_sgemm_128x64_nn", us=10)
    trace = builder.build()
    tree = build_tree(trace)
    classes = classify_kernels(trace, build_launches(trace, tree), tree)
    assert classes[row_of(trace, inside)] == KernelClass.CONV_SIMT
    assert classes[row_of(trace, outside)] == KernelClass.GEMM_SIMT
    assert not classes[trace.cat == Category.CPU_OP].any()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("aten::native_layer_norm", KernelClass.NORM),
        ("aten::_softmax", KernelClass.SOFTMAX),
        ("aten::copy_", KernelClass.COPY),
        ("aten::max_pool2d_with_indices", KernelClass.POOL),
        ("aten::mean", KernelClass.REDUCE),
        ("aten::embedding", KernelClass.INDEX),
        ("xformers_flash::flash_fwd", KernelClass.ATTENTION),
        ("mylib::secret", KernelClass.OTHER),
    ],
)
def test_operator_speaks_where_the_name_is_silent(op: str, expected: KernelClass) -> None:
    assert classify_name("my_vendor_kernel_17", (op, "float")) is expected


def test_type_of_operator_decides_for_matrix_kernels_of_unknown_precision() -> None:
    assert classify_name("MatmulKernel", ("aten::mm", "c10::BFloat16")) is KernelClass.GEMM_TENSOR_CORE
    assert classify_name("MatmulKernel", ("aten::mm", "float")) is KernelClass.GEMM_SIMT


def share(timeline: Timeline, kernel_class: KernelClass) -> float:
    rows = timeline.trace.rows(Category.KERNEL)
    of_class = rows[timeline.kernel_class[rows] == kernel_class]
    return 100 * timeline.trace.dur_ns[of_class].sum() / timeline.trace.dur_ns[rows].sum()


@pytest.mark.parametrize(
    ("prefix", "kernel_class", "percent"),
    [
        ("S05_hta_resnet50_ddp_a100", KernelClass.LAYOUT, 9.3),
        ("S14_tracelens_resnet18_gpuonly_mi210", KernelClass.LAYOUT, 15.4),
        ("S10_tracelens_timesformer_h100", KernelClass.SOFTMAX, 44.4),
        ("S05_hta_resnet50_ddp_a100", KernelClass.COMMUNICATION, 28.8),
    ],
)
def test_shares_of_recorded_traces(prefix: str, kernel_class: KernelClass, percent: float) -> None:
    assert share(shared_timeline(f"traces/{prefix}.json.gz"), kernel_class) == pytest.approx(percent, abs=0.2)


def test_layout_kernels_of_a_recorded_trace_are_all_found() -> None:
    timeline = shared_timeline("traces/S05_hta_resnet50_ddp_a100.json.gz")
    assert int((timeline.kernel_class == KernelClass.LAYOUT).sum()) == 633


def test_unaligned_kernels_of_a_recorded_trace() -> None:
    trace = shared_timeline("traces/S10_tracelens_timesformer_h100.json.gz").trace
    rows = trace.rows(Category.KERNEL)
    unaligned = np.array([kernel_name(trace, row).alignment == 1 for row in rows.tolist()])
    assert 100 * trace.dur_ns[rows[unaligned]].sum() / trace.dur_ns[rows].sum() == pytest.approx(27.9, abs=0.2)
