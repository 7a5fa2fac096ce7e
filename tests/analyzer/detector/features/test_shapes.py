"""Features that need recorded inputs: rates, convolutions, attention, tensors, repetition."""

import numpy as np
import pytest

from tests.patterns.scenes import layer, on_cpu, on_device

from .reading import DOUBLE, FLOAT, HALF, Reading

GEMM = "ampere_fp16_s16816gemm_fp16_64x64_nn"
CONV = "sm80_xmma_fprop_implicit_gemm_f16f16"


def product(b, m, k, n, *, us, dtype=HALF):
    layer(b, "aten::mm", GEMM, kernel_us=us, shapes=[(m, k), (k, n)], types=[dtype, dtype])


def conv(b, data, weight, *, us=100, stride=1, groups=1, bias=False, last=False, dtype=HALF, us_host=20):
    channels, *size = data[1:]
    axes = len(size)
    plain = [int(np.prod(data[i + 1 :])) for i in range(len(data))]
    strides = [plain[0], 1, *[channels * int(np.prod(size[i + 1 :])) for i in range(axes)]] if last else plain
    layer(
        b,
        f"aten::conv{axes}d",
        CONV,
        us=us_host,
        kernel_us=us,
        shapes=[data, weight, (weight[0],) if bias else (), (), (), (), ()],
        strides=[tuple(strides)],
        types=[dtype, dtype, dtype if bias else "", "ScalarList", "ScalarList", "ScalarList", "Scalar"],
        concrete=["", "", "", str([stride] * axes), str([0] * axes), str([1] * axes), str(groups)],
    )


def test_rates_are_against_the_peak_and_against_the_best():
    def body(b):
        product(b, 1024, 1024, 1024, us=100)  # 2.15 GFLOP in 100 us: 21.5 TFLOP/s
        product(b, 1024, 1024, 1020, us=900)

    told = Reading(on_device(body))
    flops = 2 * 1024 * 1024 * 2044
    assert told["efficiency.rate"] == pytest.approx(np.log10(flops / 1000e-6 / 1e9))
    assert told["efficiency.peak"] == pytest.approx(100 * flops / 1000e-6 / 312e12)
    assert told["efficiency.odd_products"] == pytest.approx(90)
    assert told["efficiency.odd_product_rate"] == pytest.approx(np.log10(1020 / 1024 / 9), abs=0.01)
    assert told["efficiency.gemm_best"] == pytest.approx(np.log10(2044 / 1024 / 10), abs=0.01)


def test_rates_of_a_cpu_are_against_its_own_best():
    def body(b):
        b.leaf("aten::mm", us=100, shapes=[(64, 64), (64, 64)], types=[FLOAT, FLOAT])
        b.leaf("aten::add", us=100, shapes=[(1000,), (1000,)], types=[FLOAT, FLOAT])

    told = Reading(on_cpu(body))
    assert np.isnan(told["efficiency.peak"])
    assert told["efficiency.gemm_best"] == pytest.approx(0, abs=1e-6)
    assert told["efficiency.rate"] == pytest.approx(np.log10((2 * 64**3 + 1000) / 200e-6 / 1e9), abs=0.01)


def test_kinds_of_convolutions():
    def body(b):
        conv(b, (8, 16, 32, 32), (16, 1, 3, 3), groups=16, us=300)
        conv(b, (8, 3, 224, 224), (768, 3, 16, 16), stride=16, us=100)
        conv(b, (2, 8, 8, 32, 32), (8, 8, 3, 1, 1), us=600)

    told = Reading(on_device(body))
    assert told.count("convolutions.calls") == 3
    assert told["convolutions.grouped"] == pytest.approx(30)
    assert told["convolutions.patches"] == pytest.approx(10)
    assert told["convolutions.volumes"] == pytest.approx(60)
    assert told["convolutions.temporal"] == pytest.approx(60)
    assert told["convolutions.grouped_rate"] < -1
    assert told["convolutions.share"] == pytest.approx(100)


def test_layout_of_convolutions():
    def body(b):
        conv(b, (8, 16, 32, 32), (16, 16, 3, 3), last=True)
        conv(b, (8, 16, 32, 32), (16, 16, 3, 3), last=False)
        conv(b, (8, 16, 32, 32), (16, 16, 3, 3), last=True)
        conv(b, (8, 16, 32, 32), (16, 16, 3, 3), last=True)

    told = Reading(on_device(body))
    assert told["convolutions.channels_last"] == pytest.approx(75)
    assert told["convolutions.flips"] == pytest.approx(50)
    assert told["convolutions.half_first"] == pytest.approx(25)


@pytest.mark.parametrize(("training", "frozen"), [("True", 0), ("False", 100)])
def test_norms_behind_convolutions(training, frozen):
    def body(b):
        conv(b, (8, 16, 32, 32), (16, 16, 3, 3), bias=True)
        b.leaf("aten::add_")  # the norm counts its batches
        layer(
            b,
            "aten::batch_norm",
            "batch_norm_kernel",
            shapes=[(8, 16, 32, 32), (16,), (16,), (16,), (16,)],
            types=[HALF] * 5,
            concrete=["", "", "", "", "", training],
        )

    told = Reading(on_device(body))
    assert told["convolutions.bias_then_norm"] == 100
    assert told["convolutions.then_frozen_norm"] == frozen


def by_hand(b, *, tokens=196, mask=False):
    query, scores = (96, tokens, 64), (96, tokens, tokens)
    layer(b, "aten::bmm", GEMM, shapes=[query, (96, 64, tokens)], types=[HALF, HALF])
    if mask:
        layer(b, "aten::add", "vectorized_elementwise_kernel", shapes=[scores, scores], types=[HALF, HALF])
    layer(b, "aten::softmax", "softmax_warp_forward", shapes=[scores], types=[HALF])
    layer(b, "aten::bmm", GEMM, shapes=[scores, (96, tokens, 64)], types=[HALF, HALF])


def test_attention_in_passes():
    told = Reading(on_device(lambda b: by_hand(b, mask=True)))
    assert told.count("attention.passes") == 1
    assert told.count("attention.fused") == 0
    assert told["attention.masked"] == 100
    assert told["attention.between"] == 2
    assert told["attention.tokens"] == pytest.approx(np.log10(196))


def test_softmax_without_products_is_no_attention():
    told = Reading(on_device(lambda b: layer(b, "aten::softmax", "softmax_warp_forward", shapes=[(8, 10)])))
    assert told["attention.passes"] == 0
    assert np.isnan(told["attention.between"])


def test_fused_attention_with_a_dense_mask_in_the_math_backend():
    def body(b):
        for _ in range(3):
            layer(b, "aten::linear", GEMM, shapes=[(8, 196, 768), (768, 768)], types=[HALF, HALF])
        sizes = (8, 12, 196, 60)
        with b.op(
            "aten::scaled_dot_product_attention",
            shapes=[sizes, sizes, sizes, (8, 12, 196, 196)],
            types=[HALF, HALF, HALF, HALF],
        ):
            layer(b, "aten::_scaled_dot_product_attention_math", GEMM)
        layer(b, "aten::linear", GEMM, shapes=[(8, 196, 768), (768, 768)], types=[HALF, HALF])

    told = Reading(on_device(body))
    assert told.count("attention.fused") == 1
    assert told.count("attention.math") == 1
    assert told.count("attention.flash") == 0
    assert told["attention.odd_heads"] == 100
    assert told["attention.float_mask"] == 100
    assert told["attention.mask_share"] == pytest.approx(np.log10(96))
    assert told["attention.linears"] == 4
    assert told.count("attention.alike_linears") == 3


def test_types_and_casts():
    def body(b):
        layer(b, "aten::mul", "vectorized_elementwise_kernel", shapes=[(64, 64)], types=[FLOAT])
        with b.op("aten::_to_copy", shapes=[(64, 64)], types=[FLOAT]):
            layer(b, "aten::copy_", "copy_kernel", shapes=[(64, 64), (64, 64)], types=[HALF, FLOAT])
        layer(b, "aten::mul", "vectorized_elementwise_kernel", shapes=[(64, 64)], types=[HALF])
        layer(b, "aten::mul", "vectorized_elementwise_kernel", shapes=[(64, 64)], types=[DOUBLE])

    told = Reading(on_device(body))
    assert told.count("tensors.casts") == 1
    assert told["tensors.narrowing"] == 100
    assert told["tensors.half"] == 25
    assert told["tensors.fp64"] == 25
    assert told.count("tensors.double_calls") == 1
    assert told["tensors.type_flips"] == 50
    assert told["tensors.cast_time"] == pytest.approx(25)


def test_copies_of_what_is_dense_and_of_what_is_permuted():
    dense, permuted = (4096, 64, 1), (64, 4096, 1)

    def body(b):
        for strides in (dense, permuted):
            with b.op("aten::clone", shapes=[(64, 64, 64)], types=[FLOAT]):
                b.leaf(
                    "aten::copy_",
                    kernel="copy_kernel",
                    shapes=[(64, 64, 64), (64, 64, 64)],
                    strides=[dense, strides],
                    types=[FLOAT, FLOAT],
                )

    told = Reading(on_device(body))
    assert told["tensors.redundant_copies"] == 50
    assert told["tensors.layout_copies"] == 50
    assert told.count("tensors.churn") == 1


def test_chains_of_pointwise_work():
    def body(b):
        for name in ("aten::mul", "aten::add", "aten::pow", "aten::tanh", "aten::mul"):
            layer(b, name, "vectorized_elementwise_kernel", shapes=[(64, 64)], types=[FLOAT])
            b.leaf("aten::view", shapes=[(64, 64)], types=[FLOAT])
        product(b, 64, 64, 64, us=50)

    told = Reading(on_device(body))
    assert told.count("tensors.same_size_run") == 5
    assert told.count("operators.powers_and_roots_calls") == 1


def loop(b, *, rounds, sizes=None):
    for i in range(rounds):
        size = sizes[i] if sizes else 64
        for name in ("aten::select", "aten::mul", "aten::sum", "aten::sqrt"):
            b.leaf(name, shapes=[(size, size)], types=[FLOAT])


def test_loops_over_equal_and_over_varying_sizes():
    equal = Reading(on_cpu(lambda b: loop(b, rounds=8)))
    assert equal.count("repetition.rounds") == 8
    assert equal.count("repetition.round_calls") == 4
    assert equal["repetition.share"] == 100
    varied = Reading(on_cpu(lambda b: loop(b, rounds=8, sizes=range(10, 18))))
    assert varied.count("repetition.rounds") == 1
    assert varied.count("repetition.name_rounds") == 8
    assert varied["repetition.share"] == 0


def test_loops_over_the_batch():
    def body(b):
        b.leaf("aten::linear", shapes=[(8, 196, 64), (64, 64)], types=[FLOAT, FLOAT])
        loop(b, rounds=8)

    assert Reading(on_cpu(body))["repetition.rounds_per_batch"] == pytest.approx(0)


def test_straight_programs_do_not_loop():
    def body(b):
        for k in range(12):
            b.leaf(f"aten::op{k}", shapes=[(k, k)], types=[FLOAT])

    told = Reading(on_cpu(body))
    assert told.count("repetition.rounds") == 1
    assert told["repetition.share"] == 0
    assert told["repetition.distinct"] == 100
    assert told.count("repetition.longest_run") == 1


def test_constants_of_every_step_and_shapes_of_one():
    steps = iter(range(10))

    def body(b):
        size = 32 + next(steps)
        b.leaf("aten::arange", concrete=["64"])
        b.leaf("aten::mul", shapes=[(size,)], types=[FLOAT])

    told = Reading(on_cpu(body))
    assert told["repetition.constant"] == 50
    assert told["repetition.changing"] == 50


def test_a_step_that_takes_longer_than_its_region_usually_does():
    steps = iter(range(10))

    def body(b):
        b.leaf("aten::mul", us=1000 if next(steps) == 2 else 100, shapes=[(64,)], types=[FLOAT])

    host = Reading(on_cpu(body, steps=6)).every("repetition.region_host")
    assert host[2] > 0.8
    assert np.abs(np.delete(host, 2)).max() < 0.1
