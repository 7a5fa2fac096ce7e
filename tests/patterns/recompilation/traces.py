from tests.patterns.compiled import compilation, region
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "nn.Module: OptimizedModule_0", "torch/_dynamo/eval_frame.py(1076): compile_wrapper")


def positive_every_size_compiles() -> Trace:
    def body(b: TraceBuilder) -> None:
        compilation(b, us=150_000)
        region(b, ": 0/4", kernel_us=300)

    return on_device(body, frames=FRAMES)


def positive_on_the_cpu() -> Trace:
    """Sizes vary from step to step, until the limit of versions."""
    sizes = iter(range(20, 60, 4))

    def body(b: TraceBuilder) -> None:
        size = next(sizes)
        compilation(b, us=40_000)
        with b.op(f"Torch-Compiled Region: 0/{size // 4}", us=10):
            b.leaf("aten::addmm", us=900, shapes=((64,), (size, 32), (32, 64)))

    return on_cpu(body, frames=FRAMES)


def negative_first_step_only() -> Trace:
    """Compilation belongs to the start: that is `compile-inside-measured`."""
    first = iter([True])

    def body(b: TraceBuilder) -> None:
        if next(first, False):
            compilation(b, us=900_000)
        region(b, kernel_us=300)

    return on_device(body, frames=FRAMES)


def negative_many_versions_without_compiling() -> Trace:
    """Every version was compiled before the recording."""
    versions = iter(range(100))
    return on_device(lambda b: region(b, f": 0/{next(versions)}", kernel_us=300), frames=FRAMES)
