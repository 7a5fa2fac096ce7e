"""The loop on a GPU: forward and backward each end in `torch.cuda.synchronize()`."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_sgemm_128x64_tn"


def _synchronize(b: TraceBuilder) -> None:
    with b.frame("torch/cuda/__init__.py(1070): synchronize", us=6):
        b.call("torch/cuda/__init__.py(310): _lazy_init")
        with b.frame("<built-in function _cuda_synchronize>", us=2):
            b.synchronize()


def _step(b: TraceBuilder) -> None:
    b.call("<built-in function time>")
    with b.frame("nn.Module: PointNet_0", us=4), b.frame("source.py(20): forward", us=10):
        for _ in range(30):
            layer(b, "aten::linear", GEMM, us=60, kernel_us=90)
    _synchronize(b)
    b.call("<built-in function time>")
    b.call("<built-in method append of list object at 0x7f11>")
    with b.frame("source.py(23): loss", us=5):
        layer(b, "aten::cross_entropy_loss", "nll_loss_forward_reduce_cuda_kernel_2d", us=40, kernel_us=20)
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(30):
            layer(b, "aten::mm", GEMM, us=60, kernel_us=180)
    _synchronize(b)
    b.call("<built-in function time>")
    b.call("<built-in method append of list object at 0x7f11>")
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#Adam.step"):
        for _ in range(100):  # many small launches: the host is slower than the device
            layer(b, "aten::add_", "vectorized_elementwise_kernel", us=25, kernel_us=6)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=20)
    b.host(60)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, frames=("train.py(9): main", "source.py(27): train"))
