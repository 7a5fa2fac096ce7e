from tests.builders import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

QUERY, TABLE = (8, 4, 32, 32, 20), (63, 20)
COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>"


def build() -> Trace:
    b = TraceBuilder()
    with b.frame("train.py(3): main"):
        for number in range(4):
            with b.step(number):
                b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=600)
                with b.frame("source.py(9): relative_logits"):
                    _einsum(b)
                    with b.frame("<built-in method amax of Tensor object at 0x7f1>"):
                        b.leaf("aten::amax", us=10, kernel="reduce_kernel", kernel_us=60)
                b.synchronize()
    return b.build()


def _einsum(b: TraceBuilder) -> None:
    with (
        b.frame("torch/functional.py(200): einsum"),
        b.frame("<built-in method einsum of type object at 0x7f2>"),
        b.op("aten::einsum", us=20, shapes=((), (QUERY, TABLE))),
    ):
        b.leaf("aten::permute", us=2, shapes=(QUERY, ()))
        with b.op("aten::reshape", us=3), b.op("aten::clone", us=5):
            b.leaf("aten::copy_", us=8, kernel=COPY, kernel_us=110)
        b.leaf("aten::bmm", us=10, kernel="volta_sgemm_128x64_tn", kernel_us=110)
