from tests.patterns.compiled import KERNEL, launches, region
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

FRAMES = ("serve.py(40): main", "nn.Module: OptimizedModule_0")


def positive_small_batch() -> Trace:
    return on_device(lambda b: region(b, kernels=80), frames=FRAMES)


def positive_training() -> Trace:
    """The compiled backward runs on autograd's thread and is launched the same way."""

    def body(b: TraceBuilder) -> None:
        region(b, kernels=50)
        with b.thread(2), b.op("CompiledFunctionBackward", us=30):
            launches(b, kernels=70)

    return on_device(body, frames=FRAMES)


def positive_without_numbers() -> Trace:
    """PyTorch 2.1 names its regions all alike."""
    return on_device(lambda b: region(b, "", kernels=80), frames=())


def negative_graph_launch() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.op("Torch-Compiled Region: 0/0", us=60):
            call = b.launch("cudaGraphLaunch")
            for _ in range(80):
                b.device_work(Category.KERNEL, KERNEL, us=4, launched=call)

    return on_device(body, frames=FRAMES)


def negative_device_is_full() -> Trace:
    return on_device(lambda b: region(b, kernels=80, kernel_us=150), frames=FRAMES)


def negative_few_kernels() -> Trace:
    return on_device(lambda b: region(b, kernels=8), frames=FRAMES)


def negative_eager() -> Trace:
    """Not compiled at all: `launch-bound`."""

    def body(b: TraceBuilder) -> None:
        for _ in range(80):
            b.leaf("aten::gelu", us=30, kernel=KERNEL.removeprefix("triton_"), kernel_us=4)

    return on_device(body, frames=FRAMES)


def negative_on_the_cpu() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.op("Torch-Compiled Region: 0/0", us=10):
            b.leaf("aten::addmm", us=900)

    return on_cpu(body, frames=FRAMES)
