"""Device work joined to the calls and operators behind it."""

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.launches import build_launches
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import NONE, Category


def launches_of(b: TraceBuilder):
    trace = b.build()
    tree = build_tree(trace)
    return trace, build_launches(trace, tree)


def test_a_kernel_knows_its_call_and_innermost_operator():
    b = TraceBuilder()
    with b.op("aten::linear"), b.op("aten::addmm") as op:
        call = b.launch("hipExtModuleLaunchKernel")
        kernel = b.device_work(Category.KERNEL, "Cijk_Ailk", us=5, launched=call)
    trace, launches = launches_of(b)
    assert launches.runtime[row_of(trace, kernel)] == row_of(trace, call)
    assert launches.op[row_of(trace, kernel)] == row_of(trace, op)
    assert launches.op[row_of(trace, call)] == row_of(trace, op)
    assert launches.devices_of(row_of(trace, call)).tolist() == [row_of(trace, kernel)]


def test_a_graph_launch_has_all_its_kernels():
    b = TraceBuilder()
    call = b.launch("cudaGraphLaunch")
    kernels = [b.device_work(Category.KERNEL, f"k{i % 7}", us=1, launched=call) for i in range(300)]
    trace, launches = launches_of(b)
    assert launches.devices_of(row_of(trace, call)).tolist() == [row_of(trace, k) for k in kernels]


def test_the_external_id_names_the_operator_where_the_call_does_not():
    b = TraceBuilder()
    op = b.leaf("aten::mm", external_id=42)
    unrecorded = b.event(Category.KERNEL, "gemm", 30, 5, stream=7, correlation=9, external_id=42)
    unknown = b.event(Category.KERNEL, "gemm", 40, 5, stream=7, correlation=0, external_id=0)
    b.event(Category.RUNTIME, "cudaLaunchKernel", 50, 1, correlation=0)
    trace, launches = launches_of(b)
    assert launches.op[row_of(trace, unrecorded)] == row_of(trace, op)
    assert launches.runtime[row_of(trace, unrecorded)] == NONE
    assert (launches.op[row_of(trace, unknown)], launches.runtime[row_of(trace, unknown)]) == (NONE, NONE)
