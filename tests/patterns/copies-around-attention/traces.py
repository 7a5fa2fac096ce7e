import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>"
HEADS = (8, 12, 512, 64)
FRAMES = ("train.py(40): main", "vit.py(12): forward")


def _copy(b: TraceBuilder, *, sizes=HEADS, strides=(393216, 64, 768, 1)) -> None:
    with b.op("aten::contiguous", shapes=(sizes,), strides=(strides,)), b.op("aten::clone"):
        b.leaf("aten::copy_", kernel=COPY, kernel_us=18)


def _fused(b: TraceBuilder) -> None:
    with b.op("aten::scaled_dot_product_attention", shapes=(HEADS,) * 3):
        b.leaf("aten::_flash_attention_forward", kernel="pytorch_flash::flash_fwd_kernel", kernel_us=60)


def _project(b: TraceBuilder, us: float = 100) -> None:
    b.leaf("aten::linear", kernel=GEMM, kernel_us=us, shapes=((8, 512, 768), (2304, 768)))


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            _project(b)
            for _ in range(3):
                _copy(b)
            _fused(b)
            _project(b, 40)

    return on_device(body, frames=FRAMES)


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    qkv = torch.randn(4, 784, 3, 12, 64)

    def step() -> None:
        q, k, v = (t.transpose(1, 2).contiguous() for t in qkv[:, ::8].unbind(2))
        torch.nn.functional.scaled_dot_product_attention(q[:, :, :4], k, v)

    return record(step)


def negative_recorded_views() -> Trace:
    torch = pytest.importorskip("torch")
    qkv = torch.randn(4, 98, 3, 12, 64)

    def step() -> None:
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
        torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(4, 98, -1)

    return record(step)


def negative_recorded_dense_already() -> Trace:
    """Near miss: `contiguous` on what is contiguous copies nothing."""
    torch = pytest.importorskip("torch")
    q = torch.randn(4, 12, 98, 64)
    return record(lambda: torch.nn.functional.scaled_dot_product_attention(q.contiguous(), q.contiguous(), q))


def negative_last_dimension_not_dense() -> Trace:
    """Keys from a convolution, tokens last: the kernels need the copy."""

    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            _project(b)
            _copy(b, strides=(393216, 32768, 1, 512))
            _fused(b)
            _project(b, 40)

    return on_device(body, frames=FRAMES)


def negative_separate_passes() -> Trace:
    scores = (8, 12, 512, 512)

    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            _project(b)
            _copy(b)
            b.leaf("aten::matmul", kernel=GEMM, kernel_us=60, shapes=(HEADS, (8, 12, 64, 512)))
            b.leaf("aten::softmax", kernel="softmax_warp_forward", kernel_us=70, shapes=(scores,))
            b.leaf("aten::matmul", kernel=GEMM, kernel_us=60, shapes=(scores, HEADS))

    return on_device(body, frames=FRAMES)
