"""A ResNet's 160 gradients are copied out of their buckets: small copies beside convolutions of a hundred ms."""

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

PARAMETERS = 160


def _step(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=20):
        for _ in range(50):
            b.leaf("aten::conv2d", us=20, kernel="ampere_scudnn_128x64_relu", kernel_us=800)
    b.call("<built-in function criterion>", us=10)
    with b.frame("torch/_tensor.py(570): backward"):
        for _ in range(50):
            b.leaf("aten::convolution_backward", us=20, kernel="dgrad_engine", kernel_us=1600)
        yield Exchange(us=1500)
        for _ in range(PARAMETERS):
            with b.op("torch.distributed.ddp.reducer::copy_bucket_to_grad", us=4):
                b.leaf("aten::copy_", us=6, kernel="Memcpy DtoD (Device -> Device)", kernel_us=3)
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#SGD.step", us=20):
        b.leaf("aten::_fused_sgd_", us=20, kernel="multi_tensor_apply_kernel", kernel_us=300)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=20)


def build() -> Trace:
    """Rank 0 of two."""
    return play_ranks(_step, ranks=2, frames=("source.py(10): main",))[0]
