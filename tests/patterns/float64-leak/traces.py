import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "train.py(12): loss")
LOGITS, PRIOR = (4, 12, 64, 64), (1, 12, 1, 1)
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<double>>"


def positive_recorded_prior() -> Trace:
    torch = pytest.importorskip("torch")
    logits = torch.randn(4, 12, 64, 64, requires_grad=True)
    target = torch.randint(0, 12, (4, 64, 64))
    prior = torch.zeros(1, 12, 1, 1, dtype=torch.float64)

    def step() -> None:
        logp = torch.log_softmax(logits + prior, 1)
        loss = -logp.gather(1, target.unsqueeze(1)).mean() + logp.exp().mean()
        loss.backward()

    return record(step)


def positive_batch_sent_as_doubles() -> Trace:
    """Twice the bytes to the device, and a cast there."""

    def body(b: TraceBuilder) -> None:
        with b.op("aten::to", us=5, shapes=((8, 3, 512, 512), (), ()), types=("double", "Scalar", "Scalar")):
            b.copy(us=8000, size_bytes=8 * 3 * 512 * 512 * 8)
        with b.op(
            "aten::to", us=5, shapes=((8, 3, 512, 512), ()), types=("double", "Scalar"), concrete=("", "6", "False")
        ):
            b.leaf(
                "aten::copy_",
                shapes=((8, 3, 512, 512), (8, 3, 512, 512)),
                types=("float", "double"),
                kernel=ELEMENTWISE,
                kernel_us=60,
            )
        layer(b, "aten::conv2d", CONV, kernel_us=5000, shapes=((8, 3, 512, 512), (16, 3, 3, 3)), types=("float",) * 2)

    return on_device(body, frames=FRAMES)


def positive_promoted_on_a_device() -> Trace:
    """Types are mixed inside the kernels: no conversion stands in the trace."""

    def body(b: TraceBuilder) -> None:
        layer(b, "aten::conv2d", CONV, kernel_us=3000, shapes=(LOGITS, (12, 12, 3, 3)), types=("float",) * 2)
        layer(b, "aten::add", ELEMENTWISE, kernel_us=400, shapes=(LOGITS, PRIOR), types=("float", "double"))
        for _ in range(4):
            layer(b, "aten::exp", ELEMENTWISE, kernel_us=400, shapes=(LOGITS,), types=("double",))

    return on_device(body, frames=FRAMES)


def negative_numbers_and_small_tensors() -> Trace:
    """A Python number, and a double of twelve elements: near misses."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::mul", us=400, shapes=(LOGITS, ()), types=("float", "double"))
        b.leaf("aten::add", us=400, shapes=((12,), (12,)), types=("double", "float"))

    return on_cpu(body, frames=FRAMES)


def negative_double_throughout() -> Trace:
    def body(b: TraceBuilder) -> None:
        for name in ("aten::add", "aten::exp", "aten::mul"):
            b.leaf(name, us=900, shapes=(LOGITS, LOGITS), types=("double", "double"))

    return on_cpu(body, frames=FRAMES)


def negative_recorded_cast_asked_for() -> Trace:
    torch = pytest.importorskip("torch")
    heights = torch.rand(64, 4096)

    def step() -> None:
        total = heights.double().square().sum(1)  # the sum of many squares wants the digits
        (total.float() + 1).sqrt()

    return record(step)


def negative_float32() -> Trace:
    torch = pytest.importorskip("torch")
    logits, prior = torch.randn(4, 12, 64, 64), torch.zeros(1, 12, 1, 1)
    return record(lambda: torch.log_softmax(logits + prior, 1).exp().mean())
