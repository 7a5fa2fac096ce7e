from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _work(b: TraceBuilder, kernel_us: float = 6000) -> None:
    b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=kernel_us)


def positive_images_are_opened_while_the_device_waits() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(SINGLE), b.frame("data.py(20): __getitem__", us=20):
            for _ in range(4):
                with b.frame("PIL/Image.py(960): convert"), b.frame("PIL/ImageFile.py(260): load", us=20):
                    b.call("<built-in method decode of ImagingDecoder object at 0x7f12>", us=1500)
        _work(b)

    return on_device(body)


def positive_a_film_is_read_at_inference() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.frame("predict.py(9): frames"):
            for _ in range(16):
                b.call("<built-in method read of cv2.VideoCapture object at 0x7f12>", us=900)
        b.leaf("aten::conv3d", us=20_000)

    return on_cpu(body)


def positive_workers_that_may_decode() -> Trace:
    """The trace shows that workers are waited for; what they do, the source must tell."""

    def body(b: TraceBuilder) -> None:
        with b.annotation(WORKERS):
            b.host(12_000)
        _work(b)

    return on_device(body)


def negative_decoded_on_the_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.frame("torchvision/io/image.py(150): decode_jpeg", us=200), b.op("image::decode_jpegs_cuda", us=800):
            b.kernel("nvjpeg_idct", us=900)
        _work(b)

    return on_device(body)


def negative_small_share_of_the_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.call("<built-in function imread>", us=150)
        _work(b)

    return on_device(body)


def negative_workers_keep_up() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(WORKERS):
            b.host(90)
        _work(b)

    return on_device(body)


def negative_device_is_busy_meanwhile() -> Trace:
    b = TraceBuilder()
    with b.frame("serve.py(40): main"):
        for number in range(6):
            with b.step(number, us=20):
                b.call("<built-in function imdecode>", us=2500)
                _work(b, kernel_us=10_000)
    return b.build()
