import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace


def _backward(b: TraceBuilder, *, checked: int, nodes: int = 8) -> None:
    b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=500)
    for number in range(nodes):
        with b.op("autograd::engine::evaluate_function: ConvolutionBackward0", us=10):
            with b.op("ConvolutionBackward0", us=10):
                b.leaf("aten::convolution_backward", us=20, kernel="dgrad", kernel_us=300)
            if number < checked:
                with b.op("aten::isnan", us=4):
                    b.leaf("aten::ne", us=6, kernel="elementwise", kernel_us=20)
                with b.op("aten::_is_any_true", us=4):
                    b.leaf("aten::any", us=6, kernel="reduce", kernel_us=20)
                b.item()


def positive_nan_checks_hold_up_the_device() -> Trace:
    return on_device(lambda b: _backward(b, checked=8))


def positive_deterministic_fills() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            with b.op("aten::conv2d", us=20):
                with b.op("aten::empty", us=5):
                    b.leaf("aten::fill_", us=8, kernel="FillFunctor", kernel_us=150)
                b.kernel("implicit_gemm", us=500)

    return on_device(body)


def positive_gradcheck_in_the_loop() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.frame("torch/autograd/gradcheck.py(1970): gradcheck", us=500):
            b.leaf("aten::conv2d", us=4000)
        b.leaf("aten::conv2d", us=9000)

    return on_cpu(body)


def positive_recorded_anomaly_detection() -> Trace:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    x = torch.rand(16, 32)

    def step() -> None:
        with torch.autograd.set_detect_anomaly(True):
            net(x).sum().backward()

    return record(step)


def positive_recorded_deterministic_fills() -> Trace:
    torch = pytest.importorskip("torch")
    x = torch.rand(512, 512)

    def step() -> None:
        torch.use_deterministic_algorithms(True)
        try:
            torch.empty_like(x).copy_(x)
        finally:
            torch.use_deterministic_algorithms(False)

    return record(step)


def negative_recorded_without_modes() -> Trace:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    x = torch.rand(16, 32)
    return record(lambda: net(x).sum().backward())


def negative_somebody_looks_at_one_gradient() -> Trace:
    return on_device(lambda b: _backward(b, checked=1))


def negative_zeros_are_meant() -> Trace:
    """`zeros` fills too, but that is what was asked for."""

    def body(b: TraceBuilder) -> None:
        with b.op("aten::zeros", us=10):
            b.leaf("aten::empty", us=5)
            with b.op("aten::zero_", us=5):
                b.leaf("aten::fill_", us=8, kernel="FillFunctor", kernel_us=150)
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=500)

    return on_device(body)


def negative_one_step_of_many() -> Trace:
    checked = iter([8] + [0] * 7)
    return on_device(lambda b: _backward(b, checked=next(checked)), steps=8)
