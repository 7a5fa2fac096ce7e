import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def _net(torch, layers: int = 12):
    torch.manual_seed(0)
    stages = [torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU()) for _ in range(layers)]
    return torch.nn.Sequential(*stages)


def positive_recorded_inference_with_gradients_on() -> Trace:
    torch = pytest.importorskip("torch")
    net, images = _net(torch).eval(), torch.rand(4, 8, 32, 32)
    return record(lambda: net(images))


def positive_recorded_teacher() -> Trace:
    """The student is differentiated, the teacher's graph is not."""
    torch = pytest.importorskip("torch")
    student, teacher, images = _net(torch), _net(torch, layers=24), torch.rand(4, 8, 32, 32)

    def step() -> None:
        wanted = teacher(images)
        (student(images) - wanted.detach()).square().mean().backward()

    return record(step)


def positive_recorded_without_stacks() -> Trace:
    torch = pytest.importorskip("torch")
    net, images = _net(torch).eval(), torch.rand(4, 8, 32, 32)
    return record(lambda: net(images), with_stack=False)


def positive_validation_on_a_device() -> Trace:
    """The host sets the pace, and each operator takes a sequence number that no backward operator has."""

    def body(b: TraceBuilder) -> None:
        first = getattr(b, "numbers", 0)
        with b.frame("nn.Module: VisionTransformer_0", us=20):
            for number in range(40):
                b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=10, sequence=first + number)
        b.leaf("aten::argmax", us=10, kernel="reduce_kernel", kernel_us=5, sequence=first + 40)
        b.numbers = first + 41  # type: ignore[attr-defined]

    return on_device(body)


def negative_no_grad() -> Trace:
    torch = pytest.importorskip("torch")
    net, images = _net(torch).eval(), torch.rand(4, 8, 32, 32)

    def step() -> None:
        with torch.no_grad():
            net(images)

    return record(step)


def negative_training() -> Trace:
    torch = pytest.importorskip("torch")
    net, images = _net(torch), torch.rand(4, 8, 32, 32)
    return record(lambda: net(images).square().mean().backward())


def negative_frozen_weights() -> Trace:
    """Gradients are on, but nothing asks for any: no node is made."""
    torch = pytest.importorskip("torch")
    net, images = _net(torch).eval().requires_grad_(False), torch.rand(4, 8, 32, 32)
    return record(lambda: net(images))


def negative_checkpointing() -> Trace:
    """The first pass records no graph; the second, inside the backward pass, does and uses it."""
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint_sequential

    net, images = _net(torch), torch.rand(4, 8, 32, 32)

    def step() -> None:
        checkpoint_sequential(net, 4, images, use_reentrant=False).square().mean().backward()

    return record(step)


def negative_a_metric_beside_the_loss() -> Trace:
    """A few operators on the outputs have no backward pass."""
    torch = pytest.importorskip("torch")
    net, images = _net(torch), torch.rand(4, 8, 32, 32)

    def step() -> float:
        outputs = net(images)
        outputs.square().mean().backward()
        return (outputs.sigmoid() * 2 - 1).abs().mean().item()

    return record(step)
