from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _infer(b: TraceBuilder, *, kernel_us: float = 4000) -> None:
    b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=kernel_us)


def positive_image_processor_at_inference() -> Trace:
    def body(b: TraceBuilder) -> None:
        with (
            b.frame("transformers/image_processing_utils.py(40): __call__", us=20),
            b.frame("transformers/models/vit/image_processing_vit.py(140): preprocess", us=100),
        ):
            for _ in range(8):
                with b.frame("transformers/image_transforms.py(321): resize", us=700):
                    b.call("PIL/Image.py(2200): resize", us=500)
        _infer(b)

    return on_device(body)


def positive_transforms_in_a_loader_that_a_device_waits_for() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(SINGLE), b.frame("data.py(20): __getitem__", us=50):
            b.call("torchvision/transforms/transforms.py(94): __call__", us=6000)
        _infer(b)

    return on_device(body)


def positive_resizing_operators_without_stacks() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::_upsample_bilinear2d_aa", us=5000, shapes=[(8, 3, 720, 1280)], types=["unsigned char"])
        _infer(b)

    return on_device(body)


def positive_float_transforms_on_the_cpu() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.call("albumentations/core/composition.py(329): __call__", us=8000)
        b.leaf("aten::conv2d", us=20_000)

    return on_cpu(body)


def positive_many_small_calls_of_one_function() -> Trace:
    """Each of them is next to nothing."""

    def body(b: TraceBuilder) -> None:
        with b.frame("serve.py(12): prepare", us=20):
            for _ in range(12):
                b.call("<built-in function cvtColor>", us=90)
                b.call("<built-in function resize>", us=100)
        _infer(b)

    return on_device(body)


def positive_workers_that_may_transform() -> Trace:
    """The trace shows that workers are waited for; what they do, the source must tell."""

    def body(b: TraceBuilder) -> None:
        with b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
            b.host(8000)
        _infer(b)

    return on_device(body)


def negative_transforms_on_the_device() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.frame("torchvision/transforms/v2/_container.py(51): forward", us=3000):
            b.leaf("aten::_upsample_bilinear2d_aa", kernel="upsample_gen2d_aa_out_frame", kernel_us=300)
        _infer(b)

    return on_device(body)


def negative_device_is_never_short_of_work() -> Trace:
    b = TraceBuilder()
    with b.frame("train.py(40): main"):
        for number in range(5):
            with b.step(number, us=20):
                b.call("torchvision/transforms/transforms.py(94): __call__", us=3000)
                _infer(b, kernel_us=10_000)
    return b.build()


def negative_small_share_of_the_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.call("torchvision/transforms/transforms.py(94): __call__", us=150)
        _infer(b, kernel_us=10_000)

    return on_device(body)


def negative_loader_of_a_run_on_the_cpu() -> Trace:
    """What a loader does belongs into workers there: see dataloader-in-main-process."""

    def body(b: TraceBuilder) -> None:
        with b.annotation(SINGLE):
            b.call("torchvision/transforms/transforms.py(94): __call__", us=6000)
        b.leaf("aten::conv2d", us=20_000)

    return on_cpu(body)


def negative_only_built_not_called() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.call("torchvision/transforms/transforms.py(91): __init__", us=3000)
        _infer(b)

    return on_device(body)
