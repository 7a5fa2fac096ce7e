from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def _layers(b: TraceBuilder, count: int) -> None:
    for _ in range(count):
        b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=100)


def _nonzero(b: TraceBuilder) -> None:
    with b.op("aten::nonzero", us=10):
        b.kernel("at::native::flatten_indices_kernel", us=5)
        call = b.launch("cudaMemcpyAsync")
        b.device_work(Category.MEMCPY, "Memcpy DtoH (Device -> Pageable)", us=2, launched=call, size_bytes=8)
        b.synchronize("cudaStreamSynchronize", stream=7)


def positive_boolean_mask() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _layers(b, 4)
            with b.op("aten::index", us=20):
                _nonzero(b)
            b.host(100)

    return on_device(body)


def positive_nonzero_called_directly() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _layers(b, 4)
            _nonzero(b)
            b.host(150)

    return on_device(body)


def negative_masked_fill() -> Trace:
    """`x[mask] = scalar` is a masked fill of fixed size: nothing waits."""

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _layers(b, 4)
            with b.op("aten::index_put_", us=20):
                b.leaf("aten::masked_fill_", us=10, kernel="vectorized_elementwise_kernel", kernel_us=10)

    return on_device(body)


def negative_on_the_cpu() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::linear", us=3000)
        with b.op("aten::index", us=20):
            b.leaf("aten::nonzero", us=1000)

    return on_cpu(body)


def negative_once_after_a_long_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=5000)
        _nonzero(b)

    return on_device(body)
