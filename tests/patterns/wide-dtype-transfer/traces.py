from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("serve.py(40): main", "serve.py(12): predict")
IMAGES = (16, 3, 512, 512)
CONV = "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32"
BYTE, FLOAT = "unsigned char", "float"


def _widen(b: TraceBuilder, shape: tuple[int, ...], us: float) -> None:
    with b.op("aten::to", us=3, shapes=(shape,), types=(BYTE,)), b.op("aten::_to_copy", us=3):
        b.leaf("aten::copy_", us=us, shapes=(shape, shape), types=(FLOAT, BYTE))


def _normalize(b: TraceBuilder, shape: tuple[int, ...], us: float) -> None:
    for name in ("aten::div_", "aten::sub_", "aten::div_"):
        b.leaf(name, us=us, shapes=(shape, ()), types=(FLOAT, FLOAT))


def _send(b: TraceBuilder, shape: tuple[int, ...], kind: str, *, us: float) -> None:
    with b.op("aten::to", us=8, shapes=(shape, ()), types=(kind, "Scalar")), b.op("aten::copy_", us=3):
        b.copy(us=us, size_bytes=12582912 * (4 if kind == FLOAT else 1))


def _network(b: TraceBuilder) -> None:
    for _ in range(10):
        layer(b, "aten::conv2d", CONV, us=30, kernel_us=1500)


def positive_normalized_on_the_host() -> Trace:
    def body(b: TraceBuilder) -> None:
        _widen(b, IMAGES, us=2500)
        _normalize(b, IMAGES, us=2000)
        _send(b, IMAGES, FLOAT, us=6000)
        _network(b)

    return on_device(body, frames=FRAMES)


def positive_image_by_image() -> Trace:
    """Sixteen images are converted one by one, stacked and sent together."""

    def body(b: TraceBuilder) -> None:
        for _ in range(16):
            _widen(b, IMAGES[1:], us=150)
        b.leaf("aten::stack", us=2000)
        _send(b, IMAGES, FLOAT, us=6000)
        _network(b)

    return on_device(body, frames=FRAMES)


def negative_bytes_sent() -> Trace:
    def body(b: TraceBuilder) -> None:
        _send(b, IMAGES, BYTE, us=1500)
        with b.op("aten::to", us=3, shapes=(IMAGES,), types=(BYTE,)):
            layer(b, "aten::copy_", "elementwise_kernel", kernel_us=60, shapes=(IMAGES, IMAGES), types=(FLOAT, BYTE))
        _network(b)

    return on_device(body, frames=FRAMES)


def negative_float_all_along() -> Trace:
    """Nothing shows that the images ever were bytes: a near miss, and no more than a hint."""

    def body(b: TraceBuilder) -> None:
        _send(b, IMAGES, FLOAT, us=6000)
        _network(b)

    return on_device(body, frames=FRAMES)


def negative_other_bytes() -> Trace:
    """A mask is made float32, a hundredth of what is sent."""

    def body(b: TraceBuilder) -> None:
        _widen(b, (16, 64, 64), us=40)
        _send(b, IMAGES, FLOAT, us=6000)
        _network(b)

    return on_device(body, frames=FRAMES)


def negative_cpu() -> Trace:
    def body(b: TraceBuilder) -> None:
        _widen(b, IMAGES, us=2500)
        _normalize(b, IMAGES, us=2000)

    return on_cpu(body, frames=FRAMES)
