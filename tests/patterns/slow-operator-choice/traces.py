import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "aaconv.py(9): relative_logits")
QUERY, TABLE = (8, 4, 32, 32, 20), (63, 20)
COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>"


def _einsum(b: TraceBuilder, *, copy_us: float, device: bool = True, first: tuple[int, ...] = QUERY) -> None:
    with b.op("aten::einsum", us=15, shapes=((), (first, TABLE), ())):
        b.leaf("aten::permute", us=2, shapes=(first, ()))
        if copy_us:
            with b.op("aten::reshape", us=3), b.op("aten::clone", us=5):
                b.leaf("aten::copy_", us=8 if device else copy_us, kernel=COPY if device else "", kernel_us=copy_us)
        b.leaf("aten::bmm", us=10 if device else 400, kernel="ampere_sgemm_64x64_tn" if device else "", kernel_us=120)


def positive_relative_logits() -> Trace:
    """torch 1.x, where the query was copied into the product's order."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=900)
        for _ in range(6):
            _einsum(b, copy_us=110)

    return on_device(body, frames=FRAMES)


def positive_recorded_channel_mix() -> Trace:
    torch = pytest.importorskip("torch")
    maps, weight = torch.rand(8, 32, 48, 48), torch.rand(16, 32)
    return record(lambda: torch.einsum("bchw,oc->bohw", maps, weight).relu_())


def positive_recorded_sum_of_products() -> Trace:
    torch = pytest.importorskip("torch")
    first = torch.rand(1, 4, 8, 24, 24, 5, requires_grad=True)
    second = torch.rand(1, 4, 8, 24, 24, 5)
    return record(lambda: torch.einsum("bnchwk,bnchwk->bnchw", first, second).sum().backward())


def positive_cdist_of_boxes() -> Trace:
    """DETR's matcher: every query against every box, four coordinates."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=2000)
        with b.op("aten::cdist", us=10, shapes=((7200, 4), (320, 4), (), ()), concrete=("", "", "1.", "")):
            b.leaf(
                "aten::_cdist_forward",
                us=10,
                kernel="void at::native::cdist_kernel_cuda_impl<float, at::native::dists<float>::one>",
                kernel_us=1900,
            )

    return on_device(body, frames=FRAMES)


def negative_recorded_plain_product() -> Trace:
    """For two matrices einsum is one product and copies nothing."""
    torch = pytest.importorskip("torch")
    matrix = torch.rand(400, 300)
    return record(lambda: torch.einsum("ik,kj->ij", matrix, matrix.t()))


def negative_recorded_attention_equation() -> Trace:
    """Heads in the third place have to be copied by any product."""
    torch = pytest.importorskip("torch")
    query = torch.rand(4, 128, 4, 32)
    return record(lambda: torch.einsum("bihd,bjhd->bhij", query, query))


def negative_no_copies() -> Trace:
    return on_cpu(lambda b: _einsum(b, copy_us=0, device=False), frames=FRAMES)


def negative_cdist_on_the_cpu() -> Trace:
    torch = pytest.importorskip("torch")
    queries, boxes = torch.rand(900, 4), torch.rand(100, 4)
    return record(lambda: torch.cdist(queries, boxes, p=1))


def negative_cdist_of_wide_vectors() -> Trace:
    def body(b: TraceBuilder) -> None:
        shapes = ((4096, 256), (4096, 256), (), ())
        b.leaf("aten::cdist", us=20, kernel="cdist_kernel", kernel_us=5000, shapes=shapes, concrete=("", "", "1.", ""))

    return on_device(body, frames=FRAMES)
