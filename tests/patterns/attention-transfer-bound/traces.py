from collections.abc import Callable

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

HALF = ("c10::BFloat16",) * 4
GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4>"
FLASH = "pytorch_flash::flash_fwd_kernel"
HEADS = (8, 12, 512, 64)
FRAMES = ("train.py(40): main", "vit.py(12): forward")


def _project(b: TraceBuilder, width: int = 768, us: float = 40) -> None:
    b.leaf("aten::linear", kernel=GEMM, kernel_us=us, shapes=((8, 512, 768), (width, 768)), types=HALF)


def _fused(b: TraceBuilder, us: float = 60, key=HEADS, mask=()) -> None:
    b.leaf(
        "aten::scaled_dot_product_attention",
        kernel=FLASH,
        kernel_us=us,
        shapes=(HEADS, key, key, mask),
        types=HALF,
    )


def _layers(around: Callable[[TraceBuilder], None], behind: Callable[[TraceBuilder], None] | None = None) -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            _project(b, 2304, 100)
            around(b)
            if behind is not None:
                behind(b)
            _project(b)

    return on_device(body, frames=FRAMES)


def _copy(b: TraceBuilder, us: float = 30) -> None:
    with b.op("aten::contiguous", shapes=(HEADS,)), b.op("aten::clone"):
        b.leaf("aten::copy_", kernel=COPY, kernel_us=us, shapes=(HEADS, HEADS))


def positive_copies() -> Trace:
    def around(b: TraceBuilder) -> None:
        for _ in range(3):
            _copy(b)
        _fused(b)

    return _layers(around, _copy)


def positive_copies_inside_the_fused_call() -> Trace:
    """Inputs that the kernel cannot take as they are: the call makes them contiguous itself."""

    def around(b: TraceBuilder) -> None:
        with b.op("aten::scaled_dot_product_attention", shapes=(HEADS,) * 3, types=HALF):
            for _ in range(3):
                b.leaf("aten::copy_", kernel=COPY, kernel_us=30)
            b.leaf("aten::_flash_attention_forward", kernel=FLASH, kernel_us=60)

    return _layers(around)


def positive_masks() -> Trace:
    scores = (8, 1, 512, 512)

    def around(b: TraceBuilder) -> None:
        b.leaf("aten::ones", kernel=POINTWISE, kernel_us=20, shapes=())
        b.leaf("aten::tril", kernel="triu_tril_kernel", kernel_us=20, shapes=(scores[2:],))
        b.leaf("aten::masked_fill", kernel=POINTWISE, kernel_us=40, shapes=(scores, scores))
        _fused(b, mask=scores)

    return _layers(around)


def positive_cache_of_keys_and_values() -> Trace:
    """A generative model that joins a growing cache with one new token in every layer."""
    kept, new, all_keys = (8, 12, 511, 64), (8, 12, 1, 64), (8, 12, 512, 64)

    def around(b: TraceBuilder) -> None:
        for _ in range(2):
            b.leaf("aten::cat", kernel="CatArrayBatchedCopy", kernel_us=30, shapes=((kept, new), ()))
        _fused(b, us=20, key=all_keys)

    return _layers(around)


def positive_communication() -> Trace:
    """Sequence parallelism that changes heads for tokens and back round the attention."""

    def exchange(b: TraceBuilder) -> None:
        b.leaf("c10d::alltoall_base_", kernel="ncclDevKernel_SendRecv", kernel_us=60, shapes=(HEADS, HEADS))

    def around(b: TraceBuilder) -> None:
        exchange(b)
        _fused(b)

    return _layers(around, exchange)


def positive_recorded_copies() -> Trace:
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Pool(nn.Module):
        """One learned query looks at all tokens, whose keys and values are put in order first."""

        def __init__(self, dim: int) -> None:
            super().__init__()
            self.query, self.kv = nn.Parameter(torch.randn(1, 8, 1, dim // 8)), nn.Linear(dim, dim * 2)

        def forward(self, x):
            b, n, _ = x.shape
            k, v = (t.reshape(b, n, 8, -1).transpose(1, 2).contiguous() for t in self.kv(x).chunk(2, dim=-1))
            return functional.scaled_dot_product_attention(self.query.expand(b, -1, -1, -1), k, v)

    pool, x = Pool(64).eval(), torch.randn(16, 784, 64)

    def step() -> None:
        with torch.inference_mode():
            pool(x)

    return record(step)


def negative_scales_and_masks_between_unfused_products() -> Trace:
    """They go with fusing the passes, which another finding says."""
    scores = (8, 12, 512, 512)

    def around(b: TraceBuilder) -> None:
        b.leaf("aten::matmul", kernel=GEMM, kernel_us=60, shapes=(HEADS, (8, 12, 64, 512)), types=HALF)
        for name in ("aten::mul", "aten::masked_fill", "aten::add"):
            b.leaf(name, kernel=POINTWISE, kernel_us=70, shapes=(scores, scores), types=HALF)
        b.leaf("aten::softmax", kernel=POINTWISE, kernel_us=60, shapes=(scores,), types=HALF)
        b.leaf("aten::matmul", kernel=GEMM, kernel_us=60, shapes=(scores, HEADS), types=HALF)

    return _layers(around)


def negative_one_copy_behind() -> Trace:
    def behind(b: TraceBuilder) -> None:
        _copy(b, 20)

    return _layers(_fused, behind)


def negative_copies_elsewhere() -> Trace:
    """Near miss: as many copies, but behind the projection, not between it and the attention."""

    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            _project(b, 2304, 100)
            _fused(b)
            _project(b)
            for _ in range(4):
                _copy(b)

    return on_device(body, frames=FRAMES)


def negative_little_of_the_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(40):
            _project(b, 3072, 900)
        _project(b)
        for _ in range(3):
            _copy(b, 4)
        _fused(b, 5)

    return on_device(body, frames=FRAMES)
