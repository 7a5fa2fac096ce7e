from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
SHAPES = ((8, 64), (64, 64))


def positive_no_stacks_and_no_shapes() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=200)

    return on_device(body, frames=())


def positive_device_events_only() -> Trace:
    b = TraceBuilder()
    for _ in range(20):
        b.kernel(GEMM, us=100)
    return b.build()


def positive_no_steps() -> Trace:
    b = TraceBuilder(devices=())
    with b.frame("infer.py(3): main"):
        for name in ("aten::conv2d", "aten::relu", "aten::linear"):
            b.leaf(name, us=500, shapes=SHAPES)
    return b.build()


def negative_everything_recorded() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=200, shapes=SHAPES)

    return on_device(body)


def negative_everything_recorded_on_the_cpu() -> Trace:
    return on_cpu(lambda b: b.leaf("aten::linear", us=3000, shapes=SHAPES) and None)


def negative_graphs_are_replayed() -> Trace:
    """No operator stands behind a replayed kernel: stacks and shapes would give nothing."""
    b = TraceBuilder()
    for number in range(4):
        with b.step(number), b.op("Torch-Compiled Region: 0/0"):
            call = b.launch("cudaGraphLaunch")
            for _ in range(60):
                b.device_work(Category.KERNEL, "triton_poi_fused_gelu_0", us=5, launched=call)
    return b.build()
