import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FROM_NUMPY = "<built-in method from_numpy of type object at 0x7f5524acea40>"


def _predict(b: TraceBuilder, own_us: float, *calls: str, elements: int = 64 * 64, name: str = "prepare") -> None:
    with b.frame(f"predict.py(12): {name}", us=own_us):
        for call in calls:
            b.call(call, us=50)
        with b.frame(FROM_NUMPY, us=10):
            b.leaf("aten::lift_fresh", us=2, shapes=[(1, 3, elements // 3)], types=["double"])
    b.leaf("aten::conv2d", us=10_000)


def positive_frame_is_normalised_before_it_is_cropped() -> Trace:
    def body(b: TraceBuilder) -> None:
        _predict(
            b,
            8000,
            "<built-in method astype of numpy.ndarray object at 0x7f55083bed90>",
            "<built-in method transpose of numpy.ndarray object at 0x7f55083bed90>",
            "<built-in function ascontiguousarray>",
        )

    return on_cpu(body)


def positive_helper_normalises_and_a_device_waits() -> Trace:
    """The arithmetic stands in a function of its own, and the caller makes the tensor."""

    def body(b: TraceBuilder) -> None:
        with b.frame("serve.py(30): encode", us=40):
            with b.frame("serve.py(12): normalise", us=9000):
                b.call("<built-in method astype of numpy.ndarray object at 0x7f55083bed90>", us=400)
            b.call(FROM_NUMPY, us=10)
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=4000)

    return on_device(body)


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    np = pytest.importorskip("numpy")
    frame = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    net = torch.nn.Conv2d(3, 8, 3)

    def prepare():
        image = (frame / 255.0 - mean) / std
        crops = [image[y : y + 96, y : y + 96] for y in (0, 100, 200, 300)]
        batch = np.ascontiguousarray(np.stack(crops).transpose(0, 3, 1, 2))
        return torch.from_numpy(batch).float()

    def step() -> None:
        with torch.inference_mode():
            net(prepare())

    return record(step)


def negative_augmentation() -> Trace:
    """numpy computes something of its own: there is no conversion to be saved."""

    def body(b: TraceBuilder) -> None:
        _predict(
            b,
            8000,
            "<built-in method astype of numpy.ndarray object at 0x7f55083bed90>",
            "numpy/_core/numeric.py(1213): roll",
        )

    return on_cpu(body)


def negative_no_more_than_torch_would_need() -> Trace:
    """A million elements in 3 ms."""

    def body(b: TraceBuilder) -> None:
        _predict(b, 3000, "<built-in method astype of numpy.ndarray object at 0x7f55083bed90>", elements=1 << 20)

    return on_cpu(body)


def negative_python_without_numpy() -> Trace:
    return on_cpu(lambda b: _predict(b, 8000, "<built-in method append of list object at 0x7f55083c7400>"))


def negative_small_share_of_the_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        _predict(b, 200, "<built-in method astype of numpy.ndarray object at 0x7f55083bed90>")
        b.leaf("aten::conv2d", us=50_000)

    return on_cpu(body)
