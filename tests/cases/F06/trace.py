"""Four levels of features: eight scalars are built on the host and copied, each with a wait."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4>"


def _scalar(b: TraceBuilder) -> None:
    with b.frame("<built-in method tensor of type object at 0x7f06>"):
        with b.op("aten::to", us=3, shapes=((),), types=("long int",)), b.op("aten::_to_copy", us=3):
            b.copy(us=2, size_bytes=8)
            b.synchronize("cudaStreamSynchronize", stream=7)
        b.leaf("aten::lift_fresh", us=1, shapes=((),), types=("long int",))
        b.leaf("aten::detach_", us=1)


def _grid(b: TraceBuilder) -> None:
    for _ in range(2):
        with b.frame("<built-in method arange of type object at 0x7f06>"):
            layer(b, "aten::arange", POINTWISE, us=12, kernel_us=2)
        layer(b, "aten::mul", POINTWISE, us=12, kernel_us=2)
    with b.frame("torch/functional.py(420): meshgrid", us=10):
        b.leaf("aten::meshgrid", us=20)
    with b.frame("<built-in method stack of type object at 0x7f06>"):
        layer(b, "aten::stack", POINTWISE, us=20, kernel_us=4)
    with b.frame("<built-in method view of Tensor object at 0x7f07>"):
        b.leaf("aten::view", us=3)
    layer(b, "aten::add", POINTWISE, us=12, kernel_us=4)
    with b.frame("<built-in method view of Tensor object at 0x7f07>"):
        b.leaf("aten::view", us=3)


def _step(b: TraceBuilder) -> None:
    for _ in range(30):
        layer(b, "aten::conv2d", GEMM, us=40, kernel_us=60)  # the backbone, called from elsewhere
    with b.frame("nn.Module: AnchorGenerator_0", us=6), b.frame("source.py(16): forward", us=10):
        with b.frame("source.py(18): <listcomp>", us=4):
            b.host(4)
        with b.frame("source.py(20): <listcomp>", us=4):
            for _ in range(8):
                _scalar(b)
        with b.frame("source.py(22): <listcomp>", us=4):
            for _ in range(4):
                with b.frame("source.py(24): grid", us=6):
                    _grid(b)
    for _ in range(30):
        layer(b, "aten::linear", GEMM, us=40, kernel_us=60)


def build() -> Trace:
    """Four images."""
    return on_device(_step, frames=("serve.py(9): main", "source.py(31): detect"))
