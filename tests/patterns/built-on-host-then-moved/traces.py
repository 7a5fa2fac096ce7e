from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
FRAMES = ("train.py(40): main", "model.py(7): forward")


def _layers(b: TraceBuilder, count: int = 10) -> None:
    for _ in range(count):
        b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=100)


def _send(b: TraceBuilder, shape: tuple[int, ...], *, us: float = 150) -> None:
    with b.op("aten::to", shapes=(shape,)), b.op("aten::_to_copy", shapes=(shape,)), b.op("aten::copy_"):
        b.copy("HtoD (Pageable -> Device)", us=us, size_bytes=4 * 1024 * 64)


def positive_zeros_to_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _layers(b)
            b.leaf("aten::zeros", us=120, concrete=("[1024, 64]",), shapes=((),))
            _send(b, (1024, 64))

    return on_device(body, frames=FRAMES)


def positive_arange_reshaped_and_moved() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _layers(b)
            b.leaf("aten::arange", us=100)
            b.leaf("aten::view", us=3)
            _send(b, (1024, 64))

    return on_device(body, frames=FRAMES)


def negative_made_on_the_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _layers(b)
            b.leaf("aten::zeros", us=10, kernel="vectorized_elementwise_kernel<FillFunctor>", kernel_us=3)

    return on_device(body, frames=FRAMES)


def negative_batch_from_the_loader() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            b.leaf("aten::lift_fresh", us=20, shapes=((1024, 64),))
        _send(b, (1024, 64))
        _layers(b, 30)

    return on_device(body)


def negative_random_batches_in_the_loop() -> Trace:
    """Random inputs made in a script's loop stand in for a data set."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::randn", us=100, concrete=("[1024, 64]",), shapes=((),))
        _send(b, (1024, 64))
        _layers(b)

    return on_device(body)


def negative_another_tensor_than_the_one_built() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b)
        b.leaf("aten::zeros", us=20, concrete=("[16]",), shapes=((),))
        _send(b, (1024, 64))

    return on_device(body, frames=FRAMES)
