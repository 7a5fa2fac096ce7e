from tests.patterns.scenes import V100, TraceBuilder, layer, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "vit.py(9): forward", "vit.py(31): forward")
ALIGNED = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
UNALIGNED = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>"
SIMT = "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"
BF16 = ("c10::BFloat16", "c10::BFloat16", "c10::BFloat16")


def _mlp(b: TraceBuilder) -> None:
    layer(b, "aten::addmm", ALIGNED, kernel_us=900, shapes=((3072,), (25088, 768), (768, 3072)), types=BF16)


def _scores(b: TraceBuilder, tokens: int, kernel: str, us: float) -> None:
    with b.op("aten::matmul", us=10):
        b.leaf(
            "aten::bmm",
            kernel=kernel,
            kernel_us=us,
            shapes=((96, tokens, 64), (96, 64, tokens)),
            strides=((tokens * 64, 64, 1), (tokens * 64, tokens, 1)),
            types=BF16[:2],
        )


def positive_attention_of_3137_tokens() -> Trace:
    def body(b: TraceBuilder) -> None:
        _mlp(b)
        _scores(b, 3137, UNALIGNED, 1900)

    return on_device(body, frames=FRAMES)


def positive_class_count() -> Trace:
    """The head's product, and in the backward pass the two that have its gradient as an operand."""

    def body(b: TraceBuilder) -> None:
        _mlp(b)
        layer(
            b,
            "aten::addmm",
            UNALIGNED,
            kernel_us=900,
            shapes=((50257,), (4096, 768), (768, 50257)),
            strides=((1,), (768, 1), (1, 768)),
            types=BF16,
        )

    return on_device(body, frames=FRAMES)


def positive_volta_without_tensor_cores() -> Trace:
    def body(b: TraceBuilder) -> None:
        layer(
            b,
            "aten::addmm",
            "volta_fp16_sgemm_fp16_128x64_tn",
            kernel_us=4000,
            shapes=((91,), (32768, 1024), (1024, 91)),
            types=("c10::Half",) * 3,
        )

    return on_device(body, device=V100, frames=FRAMES)


def negative_aligned() -> Trace:
    def body(b: TraceBuilder) -> None:
        _mlp(b)
        _scores(b, 3136, ALIGNED, 700)

    return on_device(body, frames=FRAMES)


def negative_rows_only() -> Trace:
    """An odd number of rows, which are read whole: a near miss."""

    def body(b: TraceBuilder) -> None:
        layer(
            b,
            "aten::addmm",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>",
            kernel_us=900,
            shapes=((768,), (787, 768), (768, 768)),
            strides=((1,), (768, 1), (1, 768)),
            types=BF16,
        )

    return on_device(body, frames=FRAMES)


def negative_plain_cores() -> Trace:
    """fp32 kernels of the plain cores are `align1` whatever the sizes: autocast is their matter."""
    return on_device(
        lambda b: layer(b, "aten::mm", SIMT, kernel_us=900, shapes=((512, 512), (512, 511)), types=("float",) * 2),
        frames=FRAMES,
    )


def negative_small_share() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            _mlp(b)
        _scores(b, 197, UNALIGNED, 4)

    return on_device(body, frames=FRAMES)


def negative_cpu() -> Trace:
    return on_cpu(lambda b: b.leaf("aten::mm", us=900, shapes=((512, 511), (511, 511))) and None, frames=FRAMES)
