from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _train(b: TraceBuilder, wait_us: float, *, kernels: int = 5, kernel_us: float = 2000) -> None:
    with b.annotation(WORKERS):
        b.host(wait_us)
    for _ in range(kernels):
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=kernel_us)


def positive_workers_are_waited_for() -> Trace:
    return on_device(lambda b: _train(b, 12_000))


def positive_launches_take_long() -> Trace:
    """The batches are ready, but the thread that launches is one of too many."""
    return on_device(lambda b: _train(b, 100, kernels=80, kernel_us=10), launch_us=40)


def positive_on_the_cpu() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(WORKERS):
            b.host(9000)
        b.leaf("aten::conv2d", us=12_000)

    return on_cpu(body)


def negative_usual_launches() -> Trace:
    return on_device(lambda b: _train(b, 100, kernels=80, kernel_us=10))


def negative_slow_launches_without_workers() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(80):
            b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=10)

    return on_device(body, launch_us=40)


def negative_slow_launches_that_the_device_hides() -> Trace:
    b = TraceBuilder(launch_us=40)
    with b.frame("train.py(40): main"):
        for number in range(5):
            with b.step(number, us=20):
                _train(b, 100, kernels=80, kernel_us=300)
    return b.build()
