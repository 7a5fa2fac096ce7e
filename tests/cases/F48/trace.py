"""Two nodes: four micro-batches for each optimizer step, and gradients that take longer to send than to compute."""

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_sgemm_128x64_tn"


def _micro_step(b: TraceBuilder, *, exchange_us: float, kernel_us: float = 200) -> Iterator[Exchange]:
    with (
        b.frame("nn.Module: DistributedDataParallel_0"),
        b.annotation("DistributedDataParallel.forward", us=20),
        b.frame("nn.Module: Model_0"),
        b.frame("source.py(21): forward"),
    ):
        for _ in range(2):
            b.leaf("aten::linear", us=20, kernel=GEMM, kernel_us=kernel_us)
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("aten::mm", us=20, kernel=GEMM, kernel_us=2 * kernel_us)
        yield Exchange(us=exchange_us)
        b.leaf("aten::mm", us=20, kernel=GEMM, kernel_us=2 * kernel_us)


def _optimizer(b: TraceBuilder) -> None:
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#AdamW.step", us=20):
        b.leaf("aten::_fused_adamw_", us=20, kernel="multi_tensor_apply_kernel", kernel_us=60)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=20)


def _step(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    for _ in range(4):
        yield from _micro_step(b, exchange_us=2500)
    _optimizer(b)


def build() -> Trace:
    """Rank 0's recording; each profiler step is an optimizer step."""
    return play_ranks(_step, ranks=2, frames=("source.py(32): main", "source.py(25): train"))[0]
