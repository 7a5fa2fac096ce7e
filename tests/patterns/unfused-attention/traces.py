from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

HALF = ("c10::BFloat16", "c10::BFloat16")
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
Q, K, V, S = (4, 12, 1024, 64), (4, 12, 64, 1024), (4, 12, 1024, 64), (4, 12, 1024, 1024)


def _attention(b: TraceBuilder, *, glue: bool = True, softmax_us: float = 900) -> None:
    b.leaf("aten::matmul", kernel=GEMM, kernel_us=300, shapes=(Q, K), types=HALF)
    if glue:
        b.leaf("aten::mul", kernel="void at::native::vectorized_elementwise_kernel<4>", kernel_us=200, shapes=(S, ()))
    b.leaf("aten::softmax", kernel="cunn_SoftMaxForward", kernel_us=softmax_us, shapes=(S,), types=HALF)
    b.leaf("aten::matmul", kernel=GEMM, kernel_us=300, shapes=(S, V), types=HALF)


def _mlp(b: TraceBuilder, us: float = 1500) -> None:
    b.leaf("aten::linear", kernel=GEMM, kernel_us=us, shapes=((4, 1024, 768), (3072, 768)), types=HALF)


def positive_three_passes() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            _mlp(b)
            _attention(b)

    return on_device(body, frames=("train.py(40): main", "vit.py(12): forward"))


def positive_without_shapes() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            b.leaf("aten::linear", kernel=GEMM, kernel_us=1500)
            for name, us in (("aten::bmm", 300), ("aten::div", 200), ("aten::_softmax", 900), ("aten::bmm", 300)):
                b.leaf(name, kernel=GEMM if name == "aten::bmm" else "elementwise_kernel", kernel_us=us)

    return on_device(body)


def positive_on_the_cpu() -> Trace:
    q, k, s = (6, 4, 384, 32), (6, 4, 32, 384), (6, 4, 384, 384)

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::linear", us=4000)
        b.leaf("aten::matmul", us=5000, shapes=(q, k))
        b.leaf("aten::mul", us=2000, shapes=(s, ()))
        b.leaf("aten::softmax", us=4000, shapes=(s,))
        b.leaf("aten::matmul", us=5000, shapes=(s, q))

    return on_cpu(body)


def positive_values_projected_after_the_softmax() -> Trace:
    """`torch.bmm(weights, self.value(x))` makes the values between the softmax and the second product."""

    def body(b: TraceBuilder) -> None:
        q, k, s = (8, 196, 96), (8, 96, 196), (8, 196, 196)
        b.leaf("aten::bmm", us=4000, shapes=(q, k))
        b.leaf("aten::softmax", us=3000, shapes=(s,))
        b.leaf("aten::linear", us=5000, shapes=(q, (96, 96)))
        b.leaf("aten::bmm", us=4000, shapes=(s, q))

    return on_cpu(body)


def positive_einsum() -> Trace:
    q, s = (8, 3, 196, 32), (8, 3, 196, 196)

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::einsum", us=4000, shapes=((), (q, q), ()))
        b.leaf("aten::mul", us=1000, shapes=(s, ()))
        b.leaf("aten::softmax", us=3000, shapes=(s,))
        b.leaf("aten::dropout", us=2, shapes=(s,))
        b.leaf("aten::einsum", us=4000, shapes=((), (s, q), ()))

    return on_cpu(body)


def negative_fused() -> Trace:
    def body(b: TraceBuilder) -> None:
        _mlp(b)
        with b.op("aten::scaled_dot_product_attention"), b.op("aten::_flash_attention_forward"):
            b.kernel("pytorch_flash::flash_fwd_kernel", us=700)

    return on_device(body)


def negative_math_fallback_of_the_fused_call() -> Trace:
    def body(b: TraceBuilder) -> None:
        _mlp(b)
        with b.op("aten::scaled_dot_product_attention"), b.op("aten::_scaled_dot_product_attention_math"):
            _attention(b)

    return on_device(body)


def negative_classifier_softmax_between_layers() -> Trace:
    """A softmax over class scores, with products near by that it has nothing to do with."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::bmm", kernel=GEMM, kernel_us=300, shapes=(Q[1:], K[1:]), types=HALF)
        b.leaf("aten::linear", kernel=GEMM, kernel_us=900, shapes=((4, 768), (1000, 768)))
        b.leaf("aten::softmax", kernel="cunn_SoftMaxForward", kernel_us=900, shapes=((4, 1000),))
        b.leaf("aten::matmul", kernel=GEMM, kernel_us=300, shapes=((4, 1000), (1000, 64)))

    return on_device(body)


def negative_lookup_in_a_learned_memory() -> Trace:
    """Products with a plain weight matrix: there are no heads and no batch of keys."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::matmul", us=3000, shapes=((8, 196, 96), (96, 1000)))
        b.leaf("aten::softmax", us=9000, shapes=((8, 196, 1000),))
        b.leaf("aten::matmul", us=3000, shapes=((8, 196, 1000), (1000, 96)))

    return on_cpu(body)


def negative_dropout_of_the_weights_on_the_cpu() -> Trace:
    q, k, s = (6, 4, 384, 32), (6, 4, 32, 384), (6, 4, 384, 384)

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::matmul", us=5000, shapes=(q, k))
        b.leaf("aten::softmax", us=4000, shapes=(s,))
        with b.op("aten::dropout", us=10, shapes=(s,)):
            b.leaf("aten::native_dropout", us=4000, shapes=(s,))
        b.leaf("aten::matmul", us=5000, shapes=(s, q))

    return on_cpu(body)


def negative_softmax_of_another_size() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::bmm", kernel=GEMM, kernel_us=300, shapes=((8, 64, 64), (8, 64, 64)))
        b.leaf("aten::softmax", kernel="cunn_SoftMaxForward", kernel_us=900, shapes=((8, 64, 1000),))
        b.leaf("aten::bmm", kernel=GEMM, kernel_us=300, shapes=((8, 64, 32), (8, 32, 64)))

    return on_device(body)


def positive_bias_from_a_small_network() -> Trace:
    """Swin v2: between the first product and the softmax a network makes the bias, and it is gathered and added."""
    q, k, s = (64, 3, 49, 32), (64, 3, 32, 49), (64, 3, 49, 49)

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::linear", us=4000, shapes=((64, 49, 96), (288, 96)))
        b.leaf("aten::matmul", us=3000, shapes=(q, k))
        b.leaf("aten::mul", us=1500, shapes=(s, (3, 1, 1)))
        b.leaf("aten::linear", us=200, shapes=((1, 13, 13, 2), (512, 2), (512,)))
        b.leaf("aten::relu_", us=50, shapes=((1, 13, 13, 512),))
        b.leaf("aten::linear", us=100, shapes=((1, 13, 13, 512), (3, 512)))
        b.leaf("aten::index", us=100, shapes=((169, 3), ()))
        b.leaf("aten::add", us=1500, shapes=(s, (1, 3, 49, 49)))
        b.leaf("aten::softmax", us=3000, shapes=(s,))
        b.leaf("aten::matmul", us=3000, shapes=(s, q))

    return on_cpu(body)


def positive_cross_attention() -> Trace:
    """Queries of a decoder look at an image's tokens: as many scores as queries times keys."""
    q, k, v, s = (8, 8, 100, 32), (8, 8, 32, 950), (8, 8, 950, 32), (8, 8, 100, 950)

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::linear", us=9000, shapes=((8, 950, 256), (512, 256)))
        b.leaf("aten::matmul", us=5000, shapes=(q, k))
        b.leaf("aten::masked_fill", us=4000, shapes=(s, (8, 1, 1, 950)))
        b.leaf("aten::softmax", us=5000, shapes=(s,))
        b.leaf("aten::matmul", us=5000, shapes=(s, v))

    return on_cpu(body)


def negative_layers_between_a_product_and_a_classifier() -> Trace:
    """Near miss: a product of maps, layers, and a softmax that is not of the product's result."""

    def body(b: TraceBuilder) -> None:
        b.leaf("aten::bmm", us=4000, shapes=((8, 64, 49), (8, 49, 64)))
        b.leaf("aten::linear", us=1000, shapes=((8, 64, 64), (10, 64)))
        b.leaf("aten::softmax", us=4000, shapes=((8, 64, 10),))
        b.leaf("aten::bmm", us=4000, shapes=((8, 10, 64), (8, 64, 64)))

    return on_cpu(body)
