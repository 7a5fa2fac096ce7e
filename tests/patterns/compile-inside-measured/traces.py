from tests.patterns.compiled import compilation, region
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main",)


def _begins_with(compile_us: float, b: TraceBuilder, first: list[bool]) -> None:
    if not first:
        first.append(True)
        compilation(b, us=compile_us)
    region(b, kernel_us=300)


def positive_on_a_device() -> Trace:
    first: list[bool] = []
    return on_device(lambda b: _begins_with(2_000_000, b, first), frames=FRAMES, steps=5)


def positive_on_the_cpu() -> Trace:
    first: list[bool] = []

    def body(b: TraceBuilder) -> None:
        if not first:
            first.append(True)
            compilation(b, us=700_000)
        with b.op("Torch-Compiled Region: 0/0", us=10):
            b.leaf("aten::addmm", us=900)

    return on_cpu(body, frames=FRAMES, steps=5)


def negative_warm() -> Trace:
    return on_device(lambda b: region(b, kernel_us=300), frames=FRAMES)


def negative_compiles_all_along() -> Trace:
    """That is `recompilation`."""

    def body(b: TraceBuilder) -> None:
        compilation(b, us=50_000)
        region(b, kernel_us=300)

    return on_device(body, frames=FRAMES)


def negative_shorter_than_a_step() -> Trace:
    """A small helper was compiled."""
    first: list[bool] = []
    return on_device(lambda b: _begins_with(900, b, first), frames=FRAMES, steps=5)
