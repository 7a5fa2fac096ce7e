import copy

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float>>"
SHAPES = ((64, 3, 7, 7), (64,), (64, 64, 3, 3), (128, 64, 3, 3), (128,), (256, 128, 1, 1), (256,), (1000, 256))


def _recorded(update, *, layers: int = 25) -> Trace:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(layers)))
    averaged = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch = torch.rand(64, 32)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            update(torch, averaged, model)

    return record(step)


def positive_recorded_over_state_dicts() -> Trace:
    def update(torch, averaged, model):
        source = model.state_dict()
        for key, tensor in averaged.state_dict().items():
            if tensor.dtype.is_floating_point:
                tensor.mul_(0.99).add_(source[key], alpha=0.01)

    return _recorded(update)


def positive_recorded_three_passes() -> Trace:
    def update(torch, averaged, model):
        for ours, theirs in zip(averaged.parameters(), model.parameters(), strict=True):
            ours.data = ours.data * 0.99 + theirs.data * 0.01

    return _recorded(update)


def _train(b: TraceBuilder) -> None:
    for _ in range(10):
        b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=50)
    for shape in SHAPES * 8:
        with b.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", us=2):
            b.leaf("torch::autograd::AccumulateGrad", us=2, shapes=[shape])
    with b.annotation("Optimizer.step#SGD.step"):
        b.leaf("aten::_foreach_add_", us=50, kernel="multi_tensor_apply_kernel", kernel_us=50)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b)
        with b.frame("ema.py(30): update"):
            for shape in SHAPES * 8:
                b.leaf("aten::mul_", us=8, kernel=ELEMENTWISE, kernel_us=3, shapes=[shape, ()])
                b.leaf("aten::add_", us=8, kernel=ELEMENTWISE, kernel_us=3, shapes=[shape, shape, ()])

    return on_device(body)


def negative_multi_tensor() -> Trace:
    return _recorded(
        lambda torch, averaged, model: torch._foreach_lerp_(list(averaged.parameters()), list(model.parameters()), 0.01)
    )


def negative_few_tensors() -> Trace:
    def update(torch, averaged, model):
        for ours, theirs in zip(averaged.parameters(), model.parameters(), strict=True):
            ours.mul_(0.99).add_(theirs, alpha=0.01)

    return _recorded(update, layers=4)


def negative_gradients_scaled_by_hand() -> Trace:
    """As many operators over the same shapes, but nothing is added to anything."""

    def update(torch, averaged, model):
        for p in model.parameters():
            p.grad.mul_(0.5)

    return _recorded(update)


def negative_the_optimizer_itself() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b)
        with b.annotation("Optimizer.step#Lookahead.step"):
            for shape in SHAPES * 8:
                b.leaf("aten::mul_", us=8, kernel=ELEMENTWISE, kernel_us=3, shapes=[shape, ()])
                b.leaf("aten::add_", us=8, kernel=ELEMENTWISE, kernel_us=3, shapes=[shape, shape, ()])

    return on_device(body)


def negative_activations() -> Trace:
    """A loop over feature maps that scales and shifts each in place."""

    def body(b: TraceBuilder) -> None:
        _train(b)
        for _ in range(64):
            b.leaf("aten::mul_", us=8, kernel=ELEMENTWISE, kernel_us=3, shapes=[(8, 64, 56, 56), ()])
            b.leaf("aten::add_", us=8, kernel=ELEMENTWISE, kernel_us=3, shapes=[(8, 64, 56, 56), (), ()])

    return on_device(body)
