from tests.patterns.scenes import A100, V100, TraceBuilder, noted, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, Trace

P100 = DeviceProperties(0, "Tesla P100-PCIE-16GB", 16 << 30, 6, 0, 56, 32)
FP32_CONV = "volta_scudnn_128x64_relu_interior_nn_v1"
FP32_GEMM = "volta_sgemm_128x64_nn"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::threshold_kernel_impl<float>>"
TF32_CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"
HALF_CONV = "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1"


def _step(b: TraceBuilder, conv: str = FP32_CONV, gemm: str = FP32_GEMM, *, slow_host_us: float = 0) -> None:
    b.host(slow_host_us)
    with b.frame("nn.Module: ResNet_0"):
        for _ in range(10):
            b.leaf("aten::conv2d", us=20, kernel=conv, kernel_us=800)
            b.leaf("aten::relu", us=10, kernel=RELU, kernel_us=200)
        b.leaf("aten::linear", us=20, kernel=gemm, kernel_us=300)


def positive_v100_training() -> Trace:
    return on_device(_step, device=V100)


def positive_matrix_products_on_a100() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=20, kernel="ampere_sgemm_128x64_nn", kernel_us=500)

    return on_device(body, device=A100)


def negative_already_half() -> Trace:
    return on_device(lambda b: _step(b, HALF_CONV, "volta_fp16_s884gemm_fp16_128x128"), device=V100)


def negative_tf32_convolutions() -> Trace:
    """TF32 is on by default for convolutions: autocast gains little."""
    return on_device(lambda b: _step(b, TF32_CONV, "ampere_sgemm_128x64_nn"), device=A100)


def negative_no_tensor_cores() -> Trace:
    return on_device(_step, device=P100)


def negative_the_step_waits_for_data() -> Trace:
    return on_device(lambda b: _step(b, slow_host_us=900_000), device=V100)


def negative_noted_as_under_autocast() -> Trace:
    return noted(on_device(_step, device=V100), autocast="float16")
