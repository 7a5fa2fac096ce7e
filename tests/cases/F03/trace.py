"""A decoder of three layers, each of which asks for a sum on the host."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4>"


def _asserted(b: TraceBuilder) -> None:
    for _ in range(2):
        b.leaf("aten::slice", us=4)
        b.leaf("aten::select", us=4)
    layer(b, "aten::mul", POINTWISE, us=12, kernel_us=3)
    with b.frame("<built-in method sum of Tensor object at 0x7f03>"):
        layer(b, "aten::sum", "void at::native::reduce_kernel", us=15, kernel_us=4)
    b.item()


def _core(b: TraceBuilder) -> None:
    for number in range(2):
        with b.frame(f"nn.Module: Linear_{number}", us=4), b.frame("torch/nn/modules/linear.py(124): forward", us=4):
            layer(b, "aten::linear", GEMM, us=40, kernel_us=120)
        if not number:
            with b.frame("<built-in method relu of type object at 0x7f04>"):
                layer(b, "aten::relu", POINTWISE, us=12, kernel_us=8)


def _forward(b: TraceBuilder) -> None:
    for number in range(3):
        with (
            b.frame(f"nn.Module: DeformableLayer_{number}", us=6),
            b.frame("source.py(23): forward", us=4),
        ):
            with b.frame("source.py(19): deform_attn", us=4):
                _asserted(b)
                with b.frame("source.py(16): core", us=4):
                    _core(b)
            layer(b, "aten::add", POINTWISE, us=12, kernel_us=8)


def _step(b: TraceBuilder) -> None:
    with b.frame("nn.Module: Decoder_0", us=6), b.frame("source.py(32): forward", us=6):
        _forward(b)
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(12):
            layer(b, "aten::mm", GEMM, us=40, kernel_us=150)
    with b.annotation("Optimizer.step#AdamW.step"):
        layer(b, "aten::_fused_adamw_", "multi_tensor_apply_kernel", us=80, kernel_us=60)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, frames=("train.py(9): main", "source.py(38): train_step"))
