from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "train.py(12): train_step")
SCALER = ("torch/amp/grad_scaler.py(360): step", "torch/amp/grad_scaler.py(340): _maybe_opt_step")
GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32"


def _passes(b: TraceBuilder) -> None:
    for _ in range(20):
        layer(b, "aten::linear", GEMM, us=20, kernel_us=100)
    for _ in range(20):
        layer(b, "aten::mm", GEMM, us=30, kernel_us=200)


def _check(b: TraceBuilder) -> None:
    layer(b, "aten::_amp_foreach_non_finite_check_and_unscale_", "multi_tensor_apply_kernel", us=60, kernel_us=50)


def _optimize(b: TraceBuilder) -> None:
    with b.annotation("Optimizer.step#AdamW.step"):
        for _ in range(40):
            layer(b, "aten::_foreach_add_", "multi_tensor_apply_kernel", us=60, kernel_us=20)


def _update(b: TraceBuilder) -> None:
    layer(b, "aten::_amp_update_scale_", "amp_update_scale_cuda_kernel", us=15, kernel_us=2)


def positive_found_inf_read() -> Trace:
    def body(b: TraceBuilder) -> None:
        _passes(b)
        with b.frame(SCALER[0], us=20):
            _check(b)
            with b.frame(SCALER[1], us=10):
                b.item()
                _optimize(b)
        _update(b)

    return on_device(body, frames=FRAMES)


def positive_without_stacks() -> Trace:
    """Gradients are clipped between the check and the read, which the optimizer's step follows at once."""

    def body(b: TraceBuilder) -> None:
        _passes(b)
        _check(b)
        layer(b, "aten::_foreach_norm", "multi_tensor_apply_kernel", us=40, kernel_us=30)
        b.item()
        _optimize(b)
        _update(b)

    return on_device(body, frames=())


def negative_checked_on_the_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        _passes(b)
        with b.frame(SCALER[0], us=20):
            _check(b)
            with b.annotation("Optimizer.step#AdamW.step"):
                layer(b, "aten::_fused_adamw_", "multi_tensor_apply_kernel", us=80, kernel_us=300)
        _update(b)

    return on_device(body, frames=FRAMES)


def negative_loss_read() -> Trace:
    """A read of the loss behind the step: a near miss, and host-scalar-read's matter."""

    def body(b: TraceBuilder) -> None:
        _passes(b)
        with b.frame(SCALER[0], us=20):
            _check(b)
            _optimize(b)
        _update(b)
        b.item()

    return on_device(body, frames=FRAMES)


def negative_read_without_a_scaler() -> Trace:
    def body(b: TraceBuilder) -> None:
        _passes(b)
        b.item()
        _optimize(b)

    return on_device(body, frames=())


def negative_cpu() -> Trace:
    return on_cpu(lambda b: b.leaf("aten::item", us=900) and None, frames=FRAMES)
