"""Convolutions in TF32, and a loader that is slower than the device."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, Trace

A40 = DeviceProperties(0, "NVIDIA A40", 48 << 30, 8, 6, 84, 32)
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"
SGEMM = "ampere_sgemm_128x64_nn"


def _step(b: TraceBuilder) -> None:
    with b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
        b.host(30_000)
    with b.frame("<built-in method to of Tensor object at 0x7f01>"), b.op("aten::to", us=10):
        b.copy(us=900, size_bytes=9 << 20)
    with b.frame("nn.Module: NanoDet_0", us=5), b.frame("source.py(16): forward", us=5):
        for _ in range(10):
            layer(b, "aten::conv2d", CONV, us=40, kernel_us=900)
        layer(b, "aten::conv2d", SGEMM, us=40, kernel_us=300)  # the 1x1 head
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(20):
            layer(b, "aten::convolution_backward", CONV, us=60, kernel_us=900)
    with b.annotation("Optimizer.step#SGD.step"):
        layer(b, "aten::_foreach_add_", "multi_tensor_apply_kernel", us=80, kernel_us=40)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, device=A40, frames=("train.py(9): main", "source.py(20): fit"))
