"""Training with a gradient scaler on a GPU: the host waits for the backward pass in `scaler.step`."""

from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32"
AMP = "torch/amp/grad_scaler.py"


def _forward(b: TraceBuilder) -> None:
    b.call("torch/amp/autocast_mode.py(229): __init__", us=8)
    b.call("torch/amp/autocast_mode.py(337): __enter__", us=6)
    with b.frame("nn.Module: Detector_0", us=4), b.frame("source.py(17): forward", us=10):
        for _ in range(40):
            layer(b, "aten::linear", GEMM, us=60, kernel_us=90)
    b.leaf("aten::sub", us=8, kernel="vectorized_elementwise_kernel")
    with b.frame("<built-in method abs of Tensor object at 0x7f30>"):
        b.leaf("aten::abs", us=8, kernel="vectorized_elementwise_kernel")
    with b.frame("<built-in method mean of Tensor object at 0x7f31>"):
        b.leaf("aten::mean", us=8, kernel="reduce_kernel")
    b.call("torch/amp/autocast_mode.py(388): __exit__", us=6)


def _scaler_step(b: TraceBuilder) -> None:
    with b.frame(f"{AMP}(359): step", us=20):
        with b.frame(f"{AMP}(295): unscale_", us=20):
            kernel = "multi_tensor_apply_kernel"
            layer(b, "aten::_amp_foreach_non_finite_check_and_unscale_", kernel, us=80, kernel_us=60)
        with b.frame(f"{AMP}(343): _maybe_opt_step", us=6):
            with b.frame(f"{AMP}(351): <genexpr>", us=2), b.frame("<built-in method item of Tensor object at 0x7f32>"):
                b.item()
            with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#AdamW.step"):
                for _ in range(60):
                    layer(b, "aten::_foreach_add_", kernel, us=60, kernel_us=15)


def _step(b: TraceBuilder) -> None:
    _forward(b)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=30)
    with b.frame(f"{AMP}(179): scale", us=8):
        b.leaf("aten::mul", us=8, kernel="vectorized_elementwise_kernel")
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(40):
            layer(b, "aten::mm", GEMM, us=60, kernel_us=200)
    _scaler_step(b)
    with b.frame(f"{AMP}(456): update", us=20):
        layer(b, "aten::_amp_update_scale_", "amp_update_scale_cuda_kernel", us=15, kernel_us=2)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, frames=("train.py(9): main", "source.py(21): fit"))
