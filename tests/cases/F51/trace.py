"""Fifty synchronised norms, each with a gather of mean, of variance and of count, and a reduction in the backward."""

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

LAYERS = 50
SHAPE = (32, 32, 56, 56)


def _step(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    frames = ("nn.Module: DistributedDataParallel_0", "nn.Module: MobileNet_0", "source.py(18): forward")
    with b.frame(frames[0]), b.frame(frames[1]), b.frame(frames[2]):
        for _ in range(LAYERS):
            b.leaf("aten::conv2d", us=15, kernel="conv2d_c1_k1_nchw_hw_packed_kernel", kernel_us=40)
            with b.frame("torch/nn/modules/_functions.py(9): forward"):
                b.leaf("aten::batch_norm_stats", us=10, kernel="batch_norm_collect_statistics", shapes=[SHAPE])
                for elements in (SHAPE[1], SHAPE[1], 1):
                    yield Exchange("all_gather", us=30, elements=elements)
                b.leaf("aten::batch_norm_elemt", us=10, kernel="batch_norm_transform_input", shapes=[SHAPE])
    b.leaf("aten::mean", us=10, kernel="reduce_kernel", kernel_us=5)
    with b.frame("torch/_tensor.py(570): backward"):
        for _ in range(LAYERS):
            b.leaf("aten::batch_norm_backward_reduce", us=10, kernel="batch_norm_backward_reduce")
            yield Exchange("all_reduce", us=30, elements=2 * SHAPE[1])
            b.leaf("aten::convolution_backward", us=15, kernel="dgrad_engine", kernel_us=80)


def build() -> Trace:
    """Rank 0 of eight."""
    return play_ranks(_step, ranks=8, steps=3, frames=("source.py(22): main",))[0]
