"""Batches are sent as doubles, and cast on the device."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

PATCH = (16, 1, 512, 512)
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>"


def _make_batch(b: TraceBuilder) -> None:
    with b.frame("<built-in method normal of numpy.random.mtrand.RandomState object at 0x7f01>"):
        b.host(3000)
    with b.frame("<built-in method astype of numpy.ndarray object at 0x7f02>"):
        b.host(400)
    b.host(600)
    b.call("<built-in method from_numpy of type object at 0x7f03>")
    shapes = (PATCH, PATCH)
    with (
        b.frame("<built-in method to of Tensor object at 0x7f04>"),
        b.op("aten::to", us=8, shapes=shapes[:1], types=("double",)),
    ):
        b.copy(us=6000, size_bytes=16 * 512 * 512 * 8)
    cast = {"shapes": (PATCH, ()), "types": ("double", "Scalar"), "concrete": ("", "6")}
    with b.frame("<built-in method float of Tensor object at 0x7f05>"), b.op("aten::to", us=8, **cast):
        b.leaf("aten::copy_", us=8, kernel=CAST, kernel_us=60, shapes=shapes, types=("float", "double"))


def _step(b: TraceBuilder) -> None:
    with b.frame("source.py(24): make_batch", us=10):
        _make_batch(b)
    with b.frame("nn.Module: SeismicNet_0", us=5), b.frame("source.py(20): forward", us=5):
        for _ in range(4):
            layer(b, "aten::conv2d", CONV, us=40, kernel_us=1500)
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(8):
            layer(b, "aten::convolution_backward", CONV, us=60, kernel_us=1500)
    with b.annotation("Optimizer.step#SGD.step"):
        layer(b, "aten::_foreach_add_", "multi_tensor_apply_kernel", us=80, kernel_us=40)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, frames=("run.py(9): main", "source.py(32): train"))
