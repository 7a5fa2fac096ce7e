from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "dlrm.py(9): interact")
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
GATHER = "void at::native::index_elementwise_kernel<128, 4>"


def _layers(b: TraceBuilder, count: int = 10) -> None:
    for _ in range(count):
        layer(b, "aten::linear", GEMM, us=60, kernel_us=100)


def _index_over(b: TraceBuilder) -> None:
    with b.op("aten::to", us=6, shapes=((351,),), types=("long int",)), b.op("aten::copy_", us=3):
        b.copy(us=3, size_bytes=2808)
        b.synchronize("cudaStreamSynchronize", stream=7)


def _index(b: TraceBuilder, name: str = "aten::index", *, from_host: int) -> None:
    with b.op(name, us=15, shapes=((16, 27, 27), ()), types=("float", "")):
        for _ in range(from_host):
            _index_over(b)
        b.kernel(GATHER, us=20)


def positive_two_indices() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b)
        _index(b, from_host=2)
        _layers(b)

    return on_device(body, frames=FRAMES)


def positive_put_by_index() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            _layers(b, 5)
            _index(b, "aten::index_put_", from_host=1)

    return on_device(body, frames=FRAMES)


def negative_index_on_the_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b)
        _index(b, from_host=0)
        _layers(b)

    return on_device(body, frames=FRAMES)


def negative_moved_before() -> Trace:
    """The index is copied by a statement of its own: a near miss, and another pattern's."""

    def body(b: TraceBuilder) -> None:
        _layers(b)
        _index_over(b)
        _index(b, from_host=0)
        _layers(b)

    return on_device(body, frames=FRAMES)


def negative_cpu() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.op("aten::index", us=900):
            b.leaf("aten::to", us=100)

    return on_cpu(body, frames=FRAMES)
