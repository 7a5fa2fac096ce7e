"""Each read and each write through a mask counts its true elements on the host."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4>"
EMB, KIND = (64, 7, 256), (64, 7)


def _compare(b: TraceBuilder) -> None:
    layer(b, "aten::eq", POINTWISE, us=12, kernel_us=4, shapes=(KIND, ()), types=("long int", "Scalar"))


def _nonzero(b: TraceBuilder) -> None:
    with b.op("aten::nonzero", us=15, shapes=(KIND,), types=("bool",)):
        b.kernel("void at::native::reduce_kernel", us=5)
        call = b.launch("cudaMemcpyAsync")
        b.device_work(Category.MEMCPY, "Memcpy DtoH (Device -> Pageable)", us=2, launched=call, size_bytes=8)
        b.synchronize("cudaStreamSynchronize", stream=7)
        b.kernel("void at::native::write_indices", us=5)


def _masked_add(b: TraceBuilder) -> None:
    _compare(b)
    with b.op("aten::index", us=12, shapes=(EMB, ()), types=("float", "")):
        _nonzero(b)
        b.kernel("void at::native::index_elementwise_kernel", us=6)
    layer(b, "aten::add_", POINTWISE, us=12, kernel_us=5)
    with b.op("aten::index_put_", us=10, shapes=(EMB, ()), types=("float", "")), b.op("aten::_index_put_impl_", us=10):
        _nonzero(b)
        b.kernel("void at::native::index_elementwise_kernel", us=6)


def _embed(b: TraceBuilder) -> None:
    with b.frame("source.py(20): pos_enc", us=5):
        layer(b, "aten::matmul", GEMM, us=30, kernel_us=30)
        with b.frame("<built-in method sin of Tensor object at 0x7f01>"):
            layer(b, "aten::sin", POINTWISE, us=12, kernel_us=6)
        with b.frame("<built-in method cos of Tensor object at 0x7f01>"):
            layer(b, "aten::cos", POINTWISE, us=12, kernel_us=6)
        with b.frame("<built-in method cat of type object at 0x7f02>"):
            layer(b, "aten::cat", POINTWISE, us=15, kernel_us=8)
    _compare(b)
    with b.op("aten::index_put_", us=15, shapes=(EMB, ()), types=("float", "")):
        layer(b, "aten::masked_fill_", POINTWISE, us=15, kernel_us=6)
    for _ in range(3):
        _masked_add(b)


def _step(b: TraceBuilder) -> None:
    for _ in range(10):
        layer(b, "aten::linear", GEMM, us=40, kernel_us=60)  # the decoder of the request before
    with b.frame("source.py(35): <listcomp>", us=2), b.frame("source.py(24): embed_prompts", us=10):
        _embed(b)


def build() -> Trace:
    """Four requests."""
    return on_device(_step, frames=("serve.py(9): main", "source.py(33): segment"))
