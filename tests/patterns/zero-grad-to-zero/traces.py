import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>"
SHAPES = ((64, 3, 7, 7), (64,), (64, 64, 3, 3), (128, 64, 3, 3), (128,), (256, 128, 1, 1), (256,), (1000, 256))


def _recorded(zero, *, layers: int = 25, foreach: bool = False) -> Trace:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(layers)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=foreach)
    batch = torch.rand(16, 32)

    def step() -> None:
        zero(model, optimizer)
        model(batch).square().mean().backward()
        optimizer.step()

    return record(step)


def positive_recorded_optimizer() -> Trace:
    return _recorded(lambda model, optimizer: optimizer.zero_grad(set_to_none=False))


def positive_recorded_foreach() -> Trace:
    return _recorded(lambda model, optimizer: optimizer.zero_grad(set_to_none=False), foreach=True)


def positive_recorded_by_hand() -> Trace:
    def zero(model, optimizer) -> None:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()

    return _recorded(zero)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation("Optimizer.zero_grad#SGD.zero_grad"):
            for shape in SHAPES * 8:
                b.leaf("aten::zero_", us=8, kernel=FILL, kernel_us=3, shapes=[shape])
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=50)
        for shape in SHAPES * 8:
            with b.op("torch::autograd::AccumulateGrad", us=2, shapes=[shape]):
                b.leaf("aten::add_", us=8, kernel=ADD, kernel_us=3, shapes=[shape, shape])

    return on_device(body)


def negative_default() -> Trace:
    """`zero_grad()` drops the gradients since PyTorch 2.0."""
    return _recorded(lambda model, optimizer: optimizer.zero_grad())


def negative_few_parameters() -> Trace:
    return _recorded(lambda model, optimizer: optimizer.zero_grad(set_to_none=False), layers=3)


def negative_other_buffers_are_zeroed() -> Trace:
    """As many fills, but of images."""

    def body(b: TraceBuilder) -> None:
        for _ in range(64):
            b.leaf("aten::zero_", us=8, kernel=FILL, kernel_us=3, shapes=[(3, 224, 224)])
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=50)
        for shape in SHAPES * 8:
            b.leaf("torch::autograd::AccumulateGrad", us=2, shapes=[shape])

    return on_device(body)


def negative_the_device_is_far_behind() -> Trace:
    """The host has time, and the fills are nothing beside the step."""

    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=20_000)
        with b.annotation("Optimizer.zero_grad#SGD.zero_grad"):
            for shape in SHAPES * 8:
                b.leaf("aten::zero_", us=8, kernel=FILL, kernel_us=3, shapes=[shape])
        for shape in SHAPES * 8:
            b.leaf("torch::autograd::AccumulateGrad", us=2, shapes=[shape])

    return on_device(body)
