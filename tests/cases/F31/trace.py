"""Sixteen images of a request are copied one after the other, and the host waits for each."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
IMAGE = (3, 640, 480)


def _copy_image(b: TraceBuilder) -> None:
    with b.frame("source.py(21): to_tensor", us=8):
        b.call("<built-in method from_numpy of type object at 0x7f01>")
        with b.frame("<built-in method permute of Tensor object at 0x7f02>"):
            b.leaf("aten::permute", us=3)
        with b.frame("<built-in method float of Tensor object at 0x7f03>"):
            b.leaf("aten::to", us=60)
        b.leaf("aten::div", us=60)
    with b.frame("<built-in method to of Tensor object at 0x7f04>"), b.op("aten::to", us=6, shapes=(IMAGE,)):
        b.copy(us=800, size_bytes=3 * 640 * 480 * 4)
        b.synchronize("cudaStreamSynchronize", stream=7)


def _step(b: TraceBuilder) -> None:
    with b.frame("source.py(25): predict", us=8):
        with b.frame("source.py(26): <listcomp>", us=4):
            for _ in range(16):
                _copy_image(b)
        with b.frame("nn.Module: Detector_0", us=5), b.frame("source.py(16): forward", us=10):
            for _ in range(60):
                layer(b, "aten::linear", GEMM, us=30, kernel_us=1000)


def build() -> Trace:
    """Four requests."""
    frames = ("run.py(9): main", "source.py(30): serve", "source.py(32): <listcomp>")
    return on_device(_step, frames=frames)
