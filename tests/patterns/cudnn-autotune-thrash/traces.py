from collections.abc import Iterator

from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

WEIGHT = (64, 64, 3, 3)
TRIED = (
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>",
    "void precomputed_convolve_sgemm<float, 1024, 5, 5, 4, 3, 3, 1, false>",
    "void fft2d_r2c_32x32<float, false, 1u, true>",
    "ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
    "cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4",
)
CHOSEN = TRIED[4]


def _convolve(b: TraceBuilder, side: int, *, tries: bool, benchmark: str) -> None:
    image = (2, 64, side, side)
    concrete = ("", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", benchmark, "False", "True")
    with (
        b.op("aten::conv2d", us=8, shapes=(image, WEIGHT, ())),
        b.op("aten::cudnn_convolution", us=10, shapes=(image, WEIGHT), concrete=concrete),
    ):
        for name in TRIED if tries else ():
            b.launch("cudaMalloc", us=60)
            b.kernel(name, us=250)
            b.synchronize("cudaEventSynchronize")
            b.launch("cudaFree", us=50)
        b.kernel(CHOSEN, us=120)


def _layers(b: TraceBuilder, side: int, *, tries: bool, benchmark: str = "True") -> None:
    with b.frame("nn.Module: Detector_0"):
        for _ in range(5):
            _convolve(b, side, tries=tries, benchmark=benchmark)


def _sides(*sides: int) -> Iterator[int]:
    while True:
        yield from sides


def _net(sides: Iterator[int], *, tries: bool = True, benchmark: str = "True") -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b, next(sides), tries=tries, benchmark=benchmark)

    return on_device(body)


def positive_every_batch_has_its_own_size() -> Trace:
    return _net(iter(range(320, 900, 32)))


def positive_flag_not_recorded() -> Trace:
    return _net(iter(range(320, 900, 32)), benchmark="")


def negative_sizes_that_came_before() -> Trace:
    """Few sizes: each was tried before the recording."""
    return _net(_sides(320, 480), tries=False)


def negative_trial_at_the_start() -> Trace:
    """One size: the first step tries, the others reuse what it found."""
    first = iter((True, False, False, False))

    def body(b: TraceBuilder) -> None:
        _layers(b, 640, tries=next(first))

    return on_device(body)


def negative_off() -> Trace:
    return _net(iter(range(320, 900, 32)), tries=False, benchmark="False")


def negative_one_odd_batch() -> Trace:
    """A single new size among many steps does not recur."""
    sides = iter((320, 320, 320, 320, 512, 320, 320, 320))

    def body(b: TraceBuilder) -> None:
        side = next(sides)
        _layers(b, side, tries=side == 512)

    return on_device(body, steps=8)


def negative_one_algorithm_of_many_kernels() -> Trace:
    """A Winograd algorithm in parts, as a V100 runs it, in images of several sizes."""
    sides = iter(range(320, 900, 32))
    parts = ("winogradForwardData", "winogradForwardFilter", "winogradForwardOutput")

    def body(b: TraceBuilder) -> None:
        shapes = ((2, 64, side := next(sides), side), WEIGHT)
        for _ in range(5):
            with b.op("aten::conv2d", us=8, shapes=shapes), b.op("aten::cudnn_convolution", us=10, shapes=shapes):
                b.launch("cudaMalloc", us=60)
                b.launch("cudaMalloc", us=60)
                for part in parts:
                    b.kernel(f"void cudnn::winograd_nonfused::{part}4x4<float, float>", us=150)
                b.kernel("volta_sgemm_32x128_nt", us=300)

    return on_device(body)
