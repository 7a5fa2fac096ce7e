from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _train(b: TraceBuilder, loader: str, load_us: float) -> None:
    with b.annotation(loader):
        b.leaf("aten::stack", us=load_us)
    for _ in range(5):
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=2000)


def positive_gpu_waits_for_batches() -> Trace:
    return on_device(lambda b: _train(b, SINGLE, 8000))


def positive_cpu_training() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(SINGLE):
            b.host(3800)
            b.leaf("aten::stack", us=200)
        b.leaf("aten::conv2d", us=16000)

    return on_cpu(body)


def positive_only_python_frames() -> Trace:
    def body(b: TraceBuilder) -> None:
        with (
            b.frame("torch/utils/data/dataloader.py(700): __next__"),
            b.frame("torch/utils/data/_utils/fetch.py(47): fetch"),
        ):
            b.host(5000)
        b.leaf("aten::conv2d", us=10000)

    return on_cpu(body)


def negative_workers() -> Trace:
    return on_device(lambda b: _train(b, WORKERS, 8000))


def negative_tiny_set_in_memory() -> Trace:
    return on_device(lambda b: _train(b, SINGLE, 300))


def negative_loading_is_copying() -> Trace:
    """A set in memory: workers would hand over as many bytes as are copied here."""

    def body(b: TraceBuilder) -> None:
        with b.annotation(SINGLE):
            b.host(500)
            b.leaf("aten::stack", us=2500)
        b.leaf("aten::conv2d", us=16000)

    return on_cpu(body)


def negative_small_share_of_the_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(SINGLE):
            b.host(3000)
        b.leaf("aten::conv2d", us=90000)

    return on_cpu(body)


def negative_device_is_never_short_of_work() -> Trace:
    """The host loads the next batch while the device is still busy with the last one."""
    b = TraceBuilder()
    with b.frame("train.py(40): main"):
        for number in range(5):
            with b.step(number, us=20):
                _train(b, SINGLE, 3000)
    return b.build()
