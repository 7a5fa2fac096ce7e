import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, Trace

IMAGE, WEIGHT = (16, 64, 112, 112), (64, 64, 3, 3)
FRAMES = ("train.py(40): main", "nn.Module: Net_0")
MI210 = DeviceProperties(0, "AMD Instinct MI210", 64 << 30, 9, 0, 104, 64)
CONV = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"
ADD = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<CUDAFunctor_add<float> > >"
SUM = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, func_wrapper_t<float, sum_functor> > >"


def _step(b: TraceBuilder, *, norm: str = "aten::batch_norm", bias: bool = True, training: bool = True) -> None:
    norms = {"shapes": (IMAGE, *[(64,)] * 4), "concrete": ("",) * 5 + (str(training), "0.1", "1e-05", "True")}
    for number in range(5):
        shapes = (IMAGE, WEIGHT, (64,) if bias else ())
        with b.op("aten::conv2d", us=8, shapes=shapes, sequence=10 + number), b.op("aten::_convolution", us=8):
            b.leaf("aten::cudnn_convolution", us=10, kernel=CONV, kernel_us=300)
            if bias:
                b.leaf("aten::add_", us=8, kernel=ADD, kernel_us=90)
        if training:
            b.leaf("aten::add_", us=3, shapes=((), ()))
        b.leaf(norm, us=20, kernel="void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", kernel_us=120, **norms)
    with b.thread(2):
        for number in reversed(range(5)):
            name = "autograd::engine::evaluate_function: ConvolutionBackward0"
            with b.op(name, us=4, sequence=10 + number), b.op("aten::convolution_backward", us=8):
                b.kernel(CONV.replace("fprop", "dgrad"), us=600)
                if bias:
                    b.leaf("aten::sum", us=8, kernel=SUM, kernel_us=80)


def positive_added_and_summed() -> Trace:
    return on_device(_step, frames=FRAMES)


def positive_bias_kernels_of_the_library() -> Trace:
    """MIOpen adds it by a kernel of its own, within its operator."""

    def body(b: TraceBuilder) -> None:
        for _ in range(5):
            with b.op("aten::conv2d", us=8, shapes=(IMAGE, WEIGHT, (64,))), b.op("aten::miopen_convolution", us=8):
                b.kernel("igemm_fwd_gtcx2_nhwc_bf16_bx0", us=300)
                b.kernel("OpTensorFwdBias", us=90)
            b.leaf("aten::add_", us=3, shapes=((), ()))
            concrete = ("",) * 5 + ("True", "0.1", "1e-05", "True")
            b.leaf("aten::batch_norm", kernel="MIOpenBatchNormFwdTrainSpatial", kernel_us=120, concrete=concrete)

    return on_device(body, device=MI210, frames=FRAMES)


def negative_recorded_on_the_cpu() -> Trace:
    """oneDNN adds the bias within the convolution."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16))
    images = torch.rand(4, 3, 24, 24)
    return record(lambda: net(images).sum().backward())


def negative_without_bias() -> Trace:
    return on_device(lambda b: _step(b, bias=False), frames=FRAMES)


def negative_group_norm() -> Trace:
    """Groups of channels keep the differences between their biases."""
    return on_device(lambda b: _step(b, norm="aten::group_norm"), frames=FRAMES)


def negative_inference() -> Trace:
    return on_device(lambda b: _step(b, training=False), frames=FRAMES)
