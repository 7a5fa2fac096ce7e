"""A U-Net in fp16 on a device: cuDNN turns each feature map to NHWC before a convolution and back behind it."""

from tests.builders import A100, TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>"
TO_NCHW = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false, (cudnnKernelDataType_t)0>"
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_stage3_warpsize2x2x1_g1"
NORM = "void at::native::batch_norm_transform_input_kernel<c10::Half, c10::Half, float, false, int>"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::clamp_scalar<c10::Half>>"


def build() -> Trace:
    b = TraceBuilder(devices=(A100,))
    with b.frame("source.py(39): segment"):
        for number in range(4):
            with b.step(number, us=20):
                with b.frame("nn.Module: UNet_0", us=10), b.frame("source.py(33): forward", us=20):
                    _forward(b)
                _leaf(b, "<built-in method argmax of Tensor object at 0x7f5>", "aten::argmax", "reduce_kernel<512>", 30)
                b.call("<built-in method append of list object at 0x7f6>")
                b.synchronize()
    return b.build()


def _forward(b: TraceBuilder) -> None:
    _block(b, "Block_0", 3, 32, 512)
    _leaf(b, "torch/nn/functional.py(820): max_pool2d", "aten::max_pool2d", "max_pool_forward_nchw<c10::Half>", 40)
    _block(b, "Block_1", 32, 64, 256)
    _leaf(b, "torch/nn/functional.py(4600): interpolate", "aten::upsample_nearest2d", "upsample_nearest2d", 40)
    _leaf(b, "<built-in method cat of type object at 0x7f1>", "aten::cat", "CatArrayBatchedCopy<half>", 60)
    _block(b, "Block_2", 96, 32, 512)
    _conv(b, "Conv2d_6", 32, 5, 512, kernel=1)


def _block(b: TraceBuilder, name: str, a: int, c: int, side: int) -> None:
    with b.frame(f"nn.Module: {name}", us=4), b.frame("source.py(20): forward", us=8):
        for number, channels in enumerate((a, c)):
            _conv(b, f"Conv2d_{number}", channels, c, side)
            with b.frame(f"nn.Module: BatchNorm2d_{number}", us=4):
                b.leaf("aten::batch_norm", us=20, kernel=NORM, kernel_us=130)
            _leaf(b, "torch/nn/functional.py(1680): relu", "aten::relu", RELU, 30)


def _conv(b: TraceBuilder, name: str, a: int, c: int, side: int, kernel: int = 3) -> None:
    data, weight = (1, a, side, side), (c, a, kernel, kernel)
    strides = ((a * side * side, side * side, side, 1), (a * kernel * kernel, kernel * kernel, kernel, 1))
    inputs = {"shapes": (data, weight, (c,)), "strides": strides, "types": ("c10::Half",) * 3}
    with (
        b.frame(f"nn.Module: {name}", us=4),
        b.op("aten::conv2d", us=10, **inputs),
        b.op("aten::cudnn_convolution", us=10, **inputs),
    ):
        b.kernel(TO_NHWC, us=24)
        b.kernel(CONV, us=95)
        b.kernel(TO_NCHW, us=24)


def _leaf(b: TraceBuilder, frame: str, op: str, kernel: str, us: float) -> None:
    with b.frame(frame, us=2):
        b.leaf(op, us=8, kernel=kernel, kernel_us=us)
