from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, Trace

TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>"
TO_NCHW = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false>"
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
MI210 = DeviceProperties(0, "AMD Instinct MI210", 64 << 30, 9, 0, 104, 64)

NCHW = (64 * 32 * 32, 32 * 32, 32, 1)
NHWC = (64 * 32 * 32, 1, 32 * 64, 64)
IMAGE = (8, 64, 32, 32)


def _net(b: TraceBuilder, *, layout_us: float = 60, groups: int = 1) -> None:
    weight = (64, 64 // groups, 3, 3)
    with b.frame("nn.Module: Net_0"):
        for _ in range(5):
            with b.op("aten::conv2d", shapes=(IMAGE, weight)), b.op("aten::cudnn_convolution", shapes=(IMAGE, weight)):
                if layout_us:
                    b.kernel(TO_NHWC, us=layout_us)
                b.kernel(CONV, us=200)
                if layout_us:
                    b.kernel(TO_NCHW, us=layout_us)


def _cpu_net(b: TraceBuilder, strides: tuple[int, ...]) -> None:
    weight = (64, 64, 3, 3)
    with b.frame("nn.Module: Net_0"):
        for _ in range(4):
            with b.op("aten::conv2d", shapes=(IMAGE, weight), strides=(strides, (576, 9, 3, 1)), us=20):
                b.leaf("aten::mkldnn_convolution", us=5000, shapes=(IMAGE, weight), strides=(strides, (576, 9, 3, 1)))
            b.leaf("aten::max_pool2d", us=2000, shapes=(IMAGE,), strides=(strides,))


def positive_transposes_round_convolutions() -> Trace:
    return on_device(_net)


def positive_device_events_only() -> Trace:
    b = TraceBuilder(devices=(MI210,))
    for _ in range(30):
        for name, us in (("batched_transpose_32x32_half", 40), ("igemm_fwd_gtcx2_nhwc_bf16_bx0", 150)):
            b.kernel(name, us=us, launch="hipExtModuleLaunchKernel")
    return b.build()


def positive_on_the_cpu() -> Trace:
    return on_cpu(lambda b: _cpu_net(b, NCHW))


def negative_channels_last_already() -> Trace:
    return on_device(lambda b: _net(b, layout_us=0))


def negative_channels_last_on_the_cpu() -> Trace:
    return on_cpu(lambda b: _cpu_net(b, NHWC))


def negative_cpu_strides_not_recorded() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=5000, shapes=(IMAGE, (64, 64, 3, 3)))

    return on_cpu(body)


def negative_grouped_convolutions() -> Trace:
    """Old cuDNN versions run grouped convolutions many times slower in channels_last."""
    return on_device(lambda b: _net(b, groups=8))


def negative_one_transpose_in_a_long_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.op("aten::conv2d"):
            b.kernel(TO_NHWC, us=20)
            b.kernel(CONV, us=5000)

    return on_device(body)


def positive_student_beside_a_converted_teacher() -> Trace:
    """The student's convolutions are a minority of all."""

    def body(b: TraceBuilder) -> None:
        with b.frame("teach.py(5): soften"):
            _cpu_net(b, NHWC)
            _cpu_net(b, NHWC)
        with b.frame("teach.py(9): predict"):
            _cpu_net(b, NCHW)

    return on_cpu(body)
