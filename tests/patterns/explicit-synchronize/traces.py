from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

FRAMES = ("train.py(40): main",)
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
SYNC_FRAMES = ("torch/cuda/__init__.py(1070): synchronize", "<built-in function _cuda_synchronize>")


def _phase(b: TraceBuilder, *, layers: int = 20, us: float = 60) -> None:
    for _ in range(layers):
        layer(b, "aten::linear", GEMM, us=us, kernel_us=100)


def _synchronize(b: TraceBuilder, name: str = "cudaDeviceSynchronize") -> None:
    with b.frame(SYNC_FRAMES[0], us=4), b.frame(SYNC_FRAMES[1], us=2):
        b.synchronize(name)


def positive_after_each_phase() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _phase(b)
            _synchronize(b)

    return on_device(body, frames=FRAMES)


def positive_stream_synchronized() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            _phase(b, layers=10)
            with b.frame("<built-in method synchronize of Stream object at 0x7f01>"):
                b.synchronize("cudaStreamSynchronize", stream=7)

    return on_device(body, frames=FRAMES)


def positive_launch_blocking() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(30):
            with b.op("aten::linear", us=40):
                call = b.launch("cudaLaunchKernel", us=110)
                start = b.cursor - 105
                b.stream_free[7] = start
                kernel = b.device_work(Category.KERNEL, GEMM, us=100, launched=None, stream=7)
                b._events[kernel] |= {"ts": start, "correlation": b._events[call]["correlation"]}

    return on_device(body, frames=FRAMES)


def negative_once_at_the_end() -> Trace:
    """The host is done long before the device and waits for it once: nothing else could be done meanwhile."""
    return on_device(lambda b: _phase(b, layers=80, us=5), frames=FRAMES)


def negative_within_an_operator() -> Trace:
    """A value read: another pattern's."""

    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _phase(b, layers=40, us=5)
            b.item()

    return on_device(body, frames=FRAMES)


def negative_every_now_and_then() -> Trace:
    """In one step of four: a near miss."""
    number = iter(range(100))

    def body(b: TraceBuilder) -> None:
        _phase(b, layers=80, us=5)
        if next(number) % 4 == 3:
            _synchronize(b)
            b.host(2000)

    return on_device(body, steps=8, frames=FRAMES)


def negative_cpu() -> Trace:
    return on_cpu(lambda b: b.leaf("aten::mm", us=900) and None, frames=FRAMES)
