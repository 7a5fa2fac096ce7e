"""Steps whose images differ in size: each convolution runs all kernels that could do before it runs the fastest."""

from tests.builders import A100, TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

TRIED = (
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>",
    "void precomputed_convolve_sgemm<float, 1024, 5, 5, 4, 3, 3, 1, false>",
    "void fft2d_r2c_32x32<float, false, 1u, true>",
    "ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize64x64x16_stage4",
    "cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4",
)
CHOSEN = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4"


def build() -> Trace:
    b = TraceBuilder(devices=(A100,))
    sizes = (800, 832, 768, 896, 864, 928)
    with b.frame("source.py(25): train"):
        for number, side in enumerate(sizes):
            with b.step(number, us=40):
                with b.frame("nn.Module: Detector_0", us=10), b.frame("source.py(20): forward", us=10):
                    _conv(b, "Conv2d_0", (4, 3, side, side + 64), (64, 3, 7, 7))
                    _conv(b, "Conv2d_1", (4, 64, side // 2, side // 2 + 32), (64, 64, 3, 3))
                    _conv(b, "Conv2d_2", (4, 64, side // 2, side // 2 + 32), (5, 64, 1, 1))
                b.synchronize()
    return b.build()


def _conv(b: TraceBuilder, module: str, data: tuple[int, ...], weight: tuple[int, ...]) -> None:
    with (
        b.frame(f"nn.Module: {module}", us=4),
        b.op("aten::conv2d", us=8, shapes=(data, weight, weight[:1])),
        b.op("aten::cudnn_convolution", us=10, shapes=(data, weight)),
    ):
        for name in TRIED:
            b.launch("cudaMalloc", us=90)
            b.kernel(name, us=400)
            b.synchronize("cudaEventSynchronize")
            b.launch("cudaFree", us=60)
        b.kernel(CHOSEN, us=200)
