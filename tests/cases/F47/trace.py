from tests.builders import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

MAPS = (8, 64, 222, 222)
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
GEMM = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"


def build() -> Trace:
    b = TraceBuilder()
    with b.frame("source.py(34): train"):
        for number in range(4):
            with b.step(number):
                with b.frame("<built-in method rand of type object at 0x7f2>"):
                    b.leaf("aten::rand", us=12, kernel=POINTWISE, kernel_us=20)
                _forward(b)
                b.synchronize()
    return b.build()


def _forward(b: TraceBuilder) -> None:
    with b.frame("nn.Module: Detector_0"), b.frame("source.py(28): forward"):
        _layer(b, "aten::conv2d", "nn.Module: Conv2d_0", GEMM, 260)
        for name in ("sigmoid", "tanh"):
            with b.frame(f"<built-in method {name} of type object at 0x7f2>"):
                b.leaf(f"aten::{name}", us=9, kernel=POINTWISE, kernel_us=90, shapes=(MAPS,))
            b.leaf("aten::mul", us=9, kernel=POINTWISE, kernel_us=120, shapes=(MAPS, MAPS if name == "sigmoid" else ()))
        b.leaf("aten::add", us=9, kernel=POINTWISE, kernel_us=120, shapes=(MAPS, MAPS, ()))
        _layer(b, "aten::conv2d", "nn.Module: Conv2d_1", GEMM, 90)


def _layer(b: TraceBuilder, name: str, frame: str, kernel: str, kernel_us: float) -> None:
    with b.frame(frame), b.frame("torch/nn/modules/conv.py(548): forward"):
        b.leaf(name, us=25, kernel=kernel, kernel_us=kernel_us, shapes=(MAPS, (64, 64, 3, 3)))
