"""Four ranks, of which rank 1 computes 200 ms longer before its all-reduce; only rank 0 was recorded."""

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace


def _step(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=20):
        for _ in range(4):
            b.leaf("aten::conv2d", us=20, kernel="scudnn_128x64_relu", kernel_us=5000)
    b.leaf("aten::cross_entropy_loss", us=30, kernel="nll_loss_forward_reduce_cuda_kernel_2d", kernel_us=8)
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("aten::convolution_backward", us=20, kernel="dgrad_engine", kernel_us=90_000 + 200_000 * (rank == 1))
        yield Exchange(us=2000)


def build() -> Trace:
    """Rank 0's recording alone."""
    return play_ranks(_step, ranks=4, frames=("source.py(11): main",))[0]
