"""Two GPUs in one machine: each bucket is reduced well before the backward pass is done."""

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace


def _micro_step(b: TraceBuilder) -> Iterator[Exchange]:
    with (
        b.frame("nn.Module: DistributedDataParallel_0"),
        b.annotation("DistributedDataParallel.forward", us=20),
        b.frame("nn.Module: Detector_0"),
        b.frame("source.py(16): forward"),
    ):
        for _ in range(4):
            b.leaf("aten::conv2d", us=20, kernel="scudnn_128x64_relu", kernel_us=900)
    for name in ("sub", "square", "mean", "mul"):
        b.leaf(f"aten::{name}", us=10, kernel="vectorized_elementwise_kernel", kernel_us=10)
    with b.frame("torch/_tensor.py(570): backward"):
        for _ in range(4):
            b.leaf("aten::convolution_backward", us=20, kernel="dgrad_engine", kernel_us=900)
            yield Exchange(us=600)
            b.leaf("aten::convolution_backward", us=20, kernel="wgrad_alg0_engine", kernel_us=900)


def _step(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    for _ in range(4):
        yield from _micro_step(b)
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#SGD.step", us=20):
        b.leaf("aten::_foreach_add_", us=20, kernel="multi_tensor_apply_kernel", kernel_us=60)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=20)


def build() -> Trace:
    """Rank 0's recording."""
    return play_ranks(_step, ranks=2, frames=("source.py(30): main", "source.py(20): train"))[0]
