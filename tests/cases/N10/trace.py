"""The next batch is copied on a stream of its own while the device computes: the bus is busy, and nobody waits."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, Trace

GTX = DeviceProperties(0, "NVIDIA GeForce GTX 1080 Ti", 11 << 30, 6, 1, 28, 32)
CONV = "maxwell_scudnn_128x64_relu_interior_nn_v1"


def _load(b: TraceBuilder) -> None:
    with b.frame("source.py(24): load", us=5):
        for size, us in ((48 << 20, 9000), (4 << 20, 800)):
            with b.frame("<built-in method cuda of Tensor object at 0x7f10>"), b.op("aten::to", us=10):
                b.copy("HtoD (Pinned -> Device)", us=us, size_bytes=size, stream=20)


def _step(b: TraceBuilder) -> None:
    with b.frame("source.py(30): next", us=10):
        _load(b)
    with b.frame("nn.Module: TileNet_0", us=5), b.frame("source.py(14): forward", us=5):
        for _ in range(6):
            layer(b, "aten::conv2d", CONV, us=40, kernel_us=3000)
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(12):
            layer(b, "aten::convolution_backward", CONV, us=60, kernel_us=3000)
    with b.annotation("Optimizer.step#SGD.step"):
        layer(b, "aten::_foreach_add_", "multi_tensor_apply_kernel", us=80, kernel_us=40)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, device=GTX, frames=("train.py(9): main", "source.py(37): train"))
