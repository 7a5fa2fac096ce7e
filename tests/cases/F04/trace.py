"""The loss on a GPU: 52 prediction sets, four images each, every cost matrix copied and waited for alone."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace


def _one_set(b: TraceBuilder) -> None:
    with b.frame("source.py(23): cost", us=6), b.frame("torch/functional.py(1421): cdist", us=10):
        layer(b, "aten::cdist", "cdist_kernel", us=14, kernel_us=4, shapes=[(4, 300, 4), (4, 20, 4)])
    with b.frame("torch/_tensor.py(1195): __iter__", us=3):
        b.leaf("aten::unbind", us=6, shapes=[(4, 300, 20), ()])
    with b.frame("source.py(35): <listcomp>", us=4):
        for _ in range(4):
            with (
                b.frame("<built-in method cpu of Tensor object at 0x7f10>", us=2),
                b.op("aten::to"),
                b.op("aten::copy_"),
            ):
                b.copy("DtoH (Device -> Pageable)", us=3, size_bytes=300 * 20 * 4)
            b.call("source.py(11): linear_sum_assignment", us=25)
    with b.frame("source.py(26): set_loss", us=20):
        for _ in range(4):
            layer(b, "aten::index", "index_elementwise_kernel", us=15, kernel_us=3)
            layer(b, "aten::sub", "vectorized_elementwise_kernel", us=8, kernel_us=2)
        with b.frame("<built-in method cat of type object at 0x7f10>", us=2):
            layer(b, "aten::cat", "CatArrayBatchedCopy", us=9, kernel_us=3)
        with b.frame("torch/nn/functional.py(3900): smooth_l1_loss", us=8):
            layer(b, "aten::smooth_l1_loss", "reduce_kernel", us=15, kernel_us=4)
    layer(b, "aten::add", "vectorized_elementwise_kernel", us=7, kernel_us=2)


def _step(b: TraceBuilder) -> None:
    for _ in range(20):
        layer(b, "aten::conv2d", "sm80_xmma_fprop", us=30, kernel_us=400)
    with b.frame("source.py(30): forward", us=20):
        for _ in range(52):
            _one_set(b)


def build() -> Trace:
    """Four training steps; only the loss has frames in the program."""
    return on_device(_step, frames=("train.py(40): main",))
