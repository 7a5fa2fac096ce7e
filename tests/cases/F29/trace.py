"""Frames are normalised on the host, then sent as float32 from pageable memory."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES, CHANNELS = (16, 3, 512, 512), (1, 3, 1, 1)
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"
BYTE, FLOAT = "unsigned char", "float"


def _normalize(b: TraceBuilder) -> None:
    b.call("<built-in method from_numpy of type object at 0x7f01>")
    with b.frame("<built-in method float of Tensor object at 0x7f02>"), b.op("aten::to", us=6, shapes=(FRAMES,)):
        b.leaf("aten::copy_", us=2500, shapes=(FRAMES, FRAMES), types=(FLOAT, BYTE))
    for name, other in (("div_", ()), ("sub_", CHANNELS), ("div_", CHANNELS)):
        with b.frame(f"<built-in method {name} of Tensor object at 0x7f02>"):
            b.leaf(f"aten::{name}", us=2400, shapes=(FRAMES, other), types=(FLOAT, FLOAT))


def _step(b: TraceBuilder) -> None:
    with b.frame("source.py(22): predict", us=10):
        _normalize(b)
        with (
            b.frame("<built-in method to of Tensor object at 0x7f02>"),
            b.op("aten::to", us=8, shapes=(FRAMES,), types=(FLOAT,)),
            b.op("aten::copy_", us=3, shapes=(FRAMES, FRAMES), types=(FLOAT, FLOAT)),
        ):
            b.copy(us=8000, size_bytes=50331648)
        with b.frame("nn.Module: Heatmaps_0", us=5), b.frame("source.py(18): forward", us=5):
            for _ in range(20):
                layer(b, "aten::conv2d", CONV, us=30, kernel_us=1200)


def build() -> Trace:
    """Four requests."""
    frames = ("serve.py(9): main", "source.py(28): serve", "source.py(32): <listcomp>")
    return on_device(_step, frames=frames)
