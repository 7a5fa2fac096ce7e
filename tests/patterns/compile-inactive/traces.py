import pytest

from tests.patterns.compiled import region
from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>"
SIZE = (32, 64, 56, 56)


def _eager(b: TraceBuilder) -> None:
    with b.frame("nn.Module: Detector_0"):
        for _ in range(6):
            b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=80, shapes=(SIZE, (64, 64, 3, 3)))
            for name in ("aten::add", "aten::sigmoid", "aten::mul"):
                b.leaf(name, us=12, kernel=KERNEL, kernel_us=30, shapes=(SIZE, SIZE))


def positive_eager_on_a_device() -> Trace:
    return on_device(_eager)


def positive_recorded_eager() -> Trace:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 1), torch.nn.Softplus(), torch.nn.Tanh())
    images = torch.rand(8, 3, 64, 64)
    return record(lambda: net(images))


def negative_compiled() -> Trace:
    def body(b: TraceBuilder) -> None:
        region(b, kernels=20)
        _eager(b)

    return on_device(body)


def negative_triton_kernels_without_regions() -> Trace:
    """The recording does not name regions; what ran was compiled all the same."""

    def body(b: TraceBuilder) -> None:
        _eager(b)
        b.kernel("triton_red_fused_native_layer_norm_1", us=20)

    return on_device(body)


def negative_graph_replay() -> Trace:
    def body(b: TraceBuilder) -> None:
        call = b.launch("cudaGraphLaunch")
        for _ in range(40):
            b.device_work(Category.KERNEL, KERNEL, us=10, launched=call)

    return on_device(body)
