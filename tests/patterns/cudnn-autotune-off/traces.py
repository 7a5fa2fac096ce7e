from tests.patterns.scenes import V100, TraceBuilder, noted, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

IMAGE, WEIGHT = (16, 64, 56, 56), (64, 64, 3, 3)
GOOD = "volta_scudnn_128x64_relu_interior_nn_v1"
IMPLICIT = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>"
FFT = "void fft2d_r2c_32x32<float, false, 1u, true>"


def _convolve(b: TraceBuilder, kernels: tuple[tuple[str, float], ...], benchmark: str, side: int = 56) -> None:
    image = (*IMAGE[:2], side, side)
    concrete = ("", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", benchmark, "False", "True")
    sizes = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1")
    with (
        b.op("aten::conv2d", us=8, shapes=(image, WEIGHT, ()), concrete=sizes),
        b.op("aten::cudnn_convolution", us=10, shapes=(image, WEIGHT), concrete=concrete),
    ):
        for name, us in kernels:
            b.kernel(name, us=us)


def _net(b: TraceBuilder, benchmark: str = "False", slow: str = IMPLICIT) -> None:
    with b.frame("nn.Module: Net_0"):
        for _ in range(4):
            _convolve(b, ((GOOD, 300),), benchmark)
            _convolve(b, ((slow, 1500),), benchmark)


def positive_implicit_products() -> Trace:
    return on_device(_net, device=V100)


def positive_fft() -> Trace:
    return on_device(lambda b: _net(b, slow=FFT), device=V100)


def negative_tried_already() -> Trace:
    """The trial chose these kernels."""
    return on_device(lambda b: _net(b, "True"), device=V100)


def negative_flag_not_recorded() -> Trace:
    """The kernels may be what a trial chose."""
    return on_device(lambda b: _net(b, ""), device=V100)


def negative_sizes_vary() -> Trace:
    sides = iter(range(40, 400, 8))

    def body(b: TraceBuilder) -> None:
        side = next(sides)
        for _ in range(6):
            _convolve(b, ((IMPLICIT, 1500),), "False", side)

    return on_device(body, device=V100)


def negative_good_kernels() -> Trace:
    return on_device(lambda b: _net(b, slow=GOOD), device=V100)


def negative_cpu() -> Trace:
    return on_cpu(lambda b: [b.leaf("aten::conv2d", us=4000, shapes=(IMAGE, WEIGHT)) for _ in range(4)] and None)


def positive_noted_as_off() -> Trace:
    return noted(on_device(lambda b: _net(b, ""), device=V100), cudnn_benchmark=False)


def negative_noted_as_on() -> Trace:
    return noted(on_device(lambda b: _net(b, ""), device=V100), cudnn_benchmark=True)
