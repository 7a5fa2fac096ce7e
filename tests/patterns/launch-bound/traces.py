from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>"


def _model(b: TraceBuilder, *, kernel_us: float, us: float = 40, count: int = 60) -> None:
    with b.frame("nn.Module: ViT_0"):
        for _ in range(count):
            b.leaf("aten::gelu", us=us, kernel=GELU, kernel_us=kernel_us)


def positive_small_batch() -> Trace:
    return on_device(lambda b: _model(b, kernel_us=5))


def positive_without_module_events() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(80):
            b.leaf("aten::gelu", us=30, kernel=GELU, kernel_us=4)
            b.host(10)

    return on_device(body, frames=())


def negative_device_is_full() -> Trace:
    return on_device(lambda b: _model(b, kernel_us=120))


def negative_waits_for_data() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.host(30_000)
        _model(b, kernel_us=120)

    return on_device(body)


def negative_graph_replay() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.op("Torch-Compiled Region: 0/0"):
            call = b.launch("cudaGraphLaunch")
            for _ in range(60):
                b.device_work(Category.KERNEL, "triton_poi_fused_gelu_0", us=5, launched=call)
        b.host(400)

    return on_device(body)


def negative_few_kernels() -> Trace:
    return on_device(lambda b: _model(b, kernel_us=5, count=8))


def negative_cpu() -> Trace:
    return on_cpu(lambda b: [b.leaf("aten::gelu", us=30) for _ in range(80)] and None)
