from tests.patterns.scenes import A100, V100, TraceBuilder, noted, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

SGEMM = "ampere_sgemm_128x64_nn"
TF32 = "ampere_tf32_s1688gemm_fp32_128x128_ldg4_relu_stages_32x3_tn"
BF16 = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>"


def _mlp(b: TraceBuilder, gemm: str, *, us: float = 600) -> None:
    for _ in range(8):
        b.leaf("aten::linear", us=20, kernel=gemm, kernel_us=us)
        b.leaf("aten::gelu", us=10, kernel=GELU, kernel_us=200)


def positive_fp32_vit() -> Trace:
    return on_device(lambda b: _mlp(b, SGEMM), device=A100)


def positive_only_the_head() -> Trace:
    def body(b: TraceBuilder) -> None:
        _mlp(b, TF32)
        b.leaf("aten::linear", us=20, kernel=SGEMM, kernel_us=600)

    return on_device(body, device=A100)


def negative_tf32_is_on() -> Trace:
    return on_device(lambda b: _mlp(b, TF32), device=A100)


def negative_bf16() -> Trace:
    return on_device(lambda b: _mlp(b, BF16), device=A100)


def negative_volta_has_no_tf32() -> Trace:
    return on_device(lambda b: _mlp(b, "volta_sgemm_128x64_nn"), device=V100)


def negative_matrix_vector_products() -> Trace:
    return on_device(lambda b: _mlp(b, "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16>"))


def negative_cpu() -> Trace:
    return on_cpu(lambda b: [b.leaf("aten::linear", us=4000) for _ in range(4)] and None)


def positive_noted_as_off() -> Trace:
    return noted(on_device(lambda b: _mlp(b, SGEMM), device=A100), matmul_tf32=False)


def negative_noted_as_on() -> Trace:
    """What runs on the plain cores all the same has another reason."""
    return noted(on_device(lambda b: _mlp(b, SGEMM), device=A100), matmul_tf32=True)
