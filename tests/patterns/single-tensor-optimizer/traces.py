from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def _train(b: TraceBuilder, kind: str, *, device: bool, parameters: int = 100, names: tuple[str, ...]) -> None:
    for _ in range(10):
        b.leaf("aten::linear", us=60 if device else 1000, kernel=GEMM if device else "", kernel_us=200)
    with b.annotation(f"Optimizer.step#{kind}.step"):
        for _ in range(parameters):
            for name in names:
                b.leaf(name, us=12, kernel=ADD if device else "", kernel_us=4)


MOMENTUM = ("aten::mul_", "aten::add_", "aten::add_")


def positive_adamw_on_a_device() -> Trace:
    return on_device(lambda b: _train(b, "AdamW", device=True, names=(*MOMENTUM, "aten::addcdiv_")))


def positive_adam_on_the_cpu() -> Trace:
    return on_cpu(lambda b: _train(b, "Adam", device=False, names=(*MOMENTUM, "aten::addcdiv_")))


def positive_sgd_with_momentum_on_the_cpu() -> Trace:
    return on_cpu(lambda b: _train(b, "SGD", device=False, names=MOMENTUM))


def negative_foreach() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b, "AdamW", device=True, parameters=0, names=())
        with b.annotation("Optimizer.step#AdamW.step"):
            for _ in range(60):
                b.leaf("aten::_foreach_add_", us=12, kernel="multi_tensor_apply_kernel", kernel_us=10)

    return on_device(body)


def negative_fused() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b, "AdamW", device=True, parameters=0, names=())
        with b.annotation("Optimizer.step#AdamW.step"):
            for _ in range(100):
                b.leaf("aten::add_", us=3)
            b.leaf("aten::_fused_adamw_", us=50, kernel="FusedAdamMathFunctor", kernel_us=50)

    return on_device(body)


def negative_few_parameters() -> Trace:
    return on_device(lambda b: _train(b, "AdamW", device=True, parameters=4, names=MOMENTUM))


def negative_plain_sgd_on_the_cpu() -> Trace:
    """One `add_` a parameter: there is nothing to fuse, and measurements show no gain."""
    return on_cpu(lambda b: _train(b, "SGD", device=False, names=("aten::add_",)))


def negative_device_is_busy_meanwhile() -> Trace:
    """The host runs far ahead, and the update is short beside the step."""

    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=40_000)
        _train(b, "AdamW", device=True, parameters=30, names=MOMENTUM)

    return on_device(body)
