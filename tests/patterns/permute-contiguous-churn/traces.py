from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

NCHW, NHWC = (4, 16, 128, 128), (4, 128, 128, 16)
FRAMES = ("train.py(40): main", "net.py(9): forward")
COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>"


def _permute(
    b: TraceBuilder, shape: tuple[int, ...], order: str, *, copy_us: float = 900, device: bool = False
) -> None:
    b.leaf("aten::permute", us=3, shapes=(shape, ()), concrete=("", order))
    if copy_us:
        with b.op("aten::contiguous", us=5), b.op("aten::clone", us=5):
            b.leaf("aten::copy_", us=10 if device else copy_us, kernel=COPY if device else "", kernel_us=copy_us)


def _norm_in_nhwc(b: TraceBuilder, copy_us: float = 900) -> None:
    b.leaf("aten::conv2d", us=3000, shapes=(NCHW, (16, 16, 3, 3)))
    _permute(b, NCHW, "[0, 2, 3, 1]", copy_us=copy_us)
    b.leaf("aten::layer_norm", us=1500, shapes=(NHWC,))
    _permute(b, NHWC, "[0, 3, 1, 2]", copy_us=copy_us)
    b.leaf("aten::relu", us=300, shapes=(NCHW,))


def positive_layer_norm_over_channels() -> Trace:
    return on_cpu(_norm_in_nhwc, frames=FRAMES)


def positive_without_shapes() -> Trace:
    def body(b: TraceBuilder) -> None:
        for name in ("aten::layer_norm", "aten::relu"):
            b.leaf("aten::permute", us=3)
            with b.op("aten::contiguous", us=5), b.op("aten::clone", us=900):
                pass
            b.leaf(name, us=1500)

    return on_cpu(body, frames=FRAMES)


def positive_on_a_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", kernel="implicit_gemm", kernel_us=3000)
        _permute(b, NCHW, "[0, 2, 3, 1]", device=True)
        b.leaf("aten::layer_norm", kernel="vectorized_layer_norm_kernel", kernel_us=900)
        _permute(b, NHWC, "[0, 3, 1, 2]", device=True)

    return on_device(body, frames=FRAMES)


def negative_views_only() -> Trace:
    return on_cpu(lambda b: _norm_in_nhwc(b, copy_us=0), frames=FRAMES)


def negative_one_way() -> Trace:
    def body(b: TraceBuilder) -> None:
        _permute(b, NHWC, "[0, 3, 1, 2]")
        b.leaf("aten::conv2d", us=9000)

    return on_cpu(body, frames=FRAMES)


def negative_attention_heads() -> Trace:
    def body(b: TraceBuilder) -> None:
        _permute(b, (4, 196, 12, 64), "[0, 2, 1, 3]")
        b.leaf("aten::scaled_dot_product_attention", us=4000)
        _permute(b, (4, 12, 196, 64), "[0, 2, 1, 3]")

    return on_cpu(body, frames=FRAMES)


def negative_images_made_one_after_another() -> Trace:
    """The same one-way permute for every image of a batch is no pair."""

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            b.leaf("aten::permute", us=3, shapes=((224, 224, 3), ()))
            with b.op("aten::contiguous", us=5), b.op("aten::clone", us=400):
                pass
        b.leaf("aten::conv2d", us=9000)

    return on_cpu(body, frames=FRAMES)
