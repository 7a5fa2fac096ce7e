from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def _layers(b: TraceBuilder, count: int = 10, *, us: float = 60, kernel_us: float = 100) -> None:
    for _ in range(count):
        b.leaf("aten::linear", us=us, kernel=GEMM, kernel_us=kernel_us)


def positive_read_in_every_layer() -> Trace:
    """The device is empty after each read until the host has launched the next layer."""

    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            _layers(b, 2)
            with b.frame("<built-in method item of Tensor object at 0x7f80448f3890>"):
                b.item()
            b.host(100)

    return on_device(body)


def positive_truth_of_a_tensor() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(8):
            _layers(b, 3)
            with b.op("aten::is_nonzero"):
                b.item()
            b.host(80)

    return on_device(body)


def negative_cpu_tensors() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(50):
            b.leaf("aten::linear", us=100)
            with b.op("aten::item", us=2):
                b.leaf("aten::_local_scalar_dense", us=1)

    return on_cpu(body)


def negative_host_tensors_beside_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(20):
            _layers(b, 1)
            with b.op("aten::item", us=2):
                b.leaf("aten::_local_scalar_dense", us=1)

    return on_device(body)


def negative_one_read_at_the_end_of_a_long_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b, 10, kernel_us=5000)
        b.item()

    return on_device(body)


def negative_gradient_scaler() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b, 20)
        with b.frame("torch/amp/grad_scaler.py(353): _maybe_opt_step"):
            b.item()
        b.host(2000)

    return on_device(body)
