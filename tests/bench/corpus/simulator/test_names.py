"""Kernel names: the analyzer takes each for what it is, on every device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from bench.corpus.simulator import DEVICES, names
from bench.corpus.simulator.hardware import Hardware, hardware_of
from bench.corpus.simulator.pointwise import NAMED, POINTWISE, REDUCTIONS
from bench.corpus.simulator.selections import SELECTIONS
from torchtraceap.analyzer.timeline.devices import find_device
from torchtraceap.analyzer.timeline.kernel_names import Precision, decode
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.trace.model import Category

from .conftest import Recorded, run

HARDWARE = [hardware_of(name) for name in DEVICES]
HALF = ("c10::BFloat16", "c10::Half")
EXPECTED = {
    "aten::cudnn_convolution": {KernelClass.CONV_TENSOR_CORE, KernelClass.LAYOUT},
    "aten::miopen_convolution": {KernelClass.CONV_TENSOR_CORE, KernelClass.LAYOUT},
    "aten::addmm": {KernelClass.GEMM_TENSOR_CORE, KernelClass.REDUCE},
    "aten::mm": {KernelClass.GEMM_TENSOR_CORE, KernelClass.REDUCE},
    "aten::native_layer_norm": {KernelClass.NORM},
    "aten::native_layer_norm_backward": {KernelClass.NORM},
    "aten::_log_softmax": {KernelClass.SOFTMAX},
    "aten::_flash_attention_forward": {KernelClass.ATTENTION},
    "aten::_efficient_attention_forward": {KernelClass.ATTENTION},
    "aten::_flash_attention_backward": {KernelClass.ATTENTION},
    "aten::gelu": {KernelClass.ELEMENTWISE},
    "aten::clamp_min": {KernelClass.ELEMENTWISE},
    "aten::max_pool2d_with_indices": {KernelClass.POOL},
    "aten::mean": {KernelClass.REDUCE},
    "aten::_foreach_mul_": {KernelClass.OPTIMIZER},
    "aten::copy_": {KernelClass.COPY, KernelClass.MEMCPY_HTOD, KernelClass.MEMCPY_DTOD},
}
"""What kernels of an operator may be; under autocast, so that products run on matrix units."""


def classes_by_operator(timeline: Timeline) -> dict[str, set[KernelClass]]:
    trace = timeline.trace
    found: dict[str, set[KernelClass]] = {}
    for row in trace.rows(Category.KERNEL, Category.MEMCPY).tolist():
        operator = trace.name_of(int(timeline.launches.op[row]))
        found.setdefault(operator, set()).add(KernelClass(int(timeline.kernel_class[row])))
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_are_of_their_operators_class(
    device: str, attention: Recorded, convolutions: Recorded, tmp_path: Path
) -> None:
    checked = 0
    for recorded in (attention, convolutions):
        for operator, classes in classes_by_operator(run(recorded, device, tmp_path)).items():
            assert KernelClass.OTHER not in classes, operator
            if operator in EXPECTED:
                assert classes <= EXPECTED[operator], operator
                checked += 1
    assert checked >= 10


@pytest.mark.parametrize("hardware", HARDWARE, ids=DEVICES)
def test_products_say_their_precision(hardware: Hardware) -> None:
    for dtype, precision in _types(hardware):
        name = names.gemm(hardware, dtype, precision, (128, 64), "tn", True, True)
        decoded = decode(name)
        assert decoded.precision == precision
        assert decoded.kernel_class in (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT)
        on_matrix_units = precision in (Precision.HALF, Precision.TF32)
        assert (decoded.kernel_class == KernelClass.GEMM_TENSOR_CORE) == on_matrix_units


@pytest.mark.parametrize("hardware", HARDWARE, ids=DEVICES)
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_convolutions_say_their_precision(hardware: Hardware, kind: str) -> None:
    for dtype, precision in _types(hardware):
        if dtype == "double":
            continue
        decoded = decode(names.convolution(hardware, kind, dtype, precision, (128, 64), True, True))
        assert decoded.precision == precision
        on_matrix_units = precision in (Precision.HALF, Precision.TF32)
        wanted = KernelClass.CONV_TENSOR_CORE if on_matrix_units else KernelClass.CONV_SIMT
        assert decoded.kernel_class == wanted


def test_unaligned_products_say_so() -> None:
    for name in ("A100", "H100 SXM", "RTX 3090"):
        hardware = hardware_of(name)
        for dtype in HALF:
            assert decode(names.gemm(hardware, dtype, Precision.HALF, (64, 64), "tn", False, False)).alignment == 1


def test_elementwise_work_reductions_and_selections_are_recognised() -> None:
    for rule in POINTWISE.values():
        functor = rule.functor.replace("{T}", "float")
        for name in (names.vectorized(functor, 2, "float"), names.strided(functor), names.unrolled(functor, 2)):
            assert decode(name).kernel_class == KernelClass.ELEMENTWISE, name
    for operator in REDUCTIONS.values():
        name = names.reduction(operator.replace("{T}", "float"), "float", inner=True)
        assert decode(name).kernel_class == KernelClass.REDUCE, name
    for operator, kernels in SELECTIONS.items():
        kinds = {decode(name).kernel_class for name in kernels}
        assert kinds <= {KernelClass.INDEX, KernelClass.REDUCE, KernelClass.OTHER}, operator
    for operator, (name, *_) in NAMED.items():
        if "pool" in operator:
            assert decode(f"void at::native::{name}()").kernel_class == KernelClass.POOL, name


def test_names_of_a_generation_say_which(attention: Recorded, tmp_path: Path) -> None:
    """The analyzer finds the device again where its properties are missing."""
    for name in ("V100", "T4", "H100 SXM"):
        trace = run(attention, name, tmp_path).trace
        nameless = replace(trace, info=replace(trace.info, devices=()))
        assert find_device(nameless).capability == hardware_of(name).device.capability


def _types(hardware: Hardware) -> Iterable[tuple[str, Precision]]:
    yield "c10::Half", Precision.HALF
    yield "float", Precision.FP32
    yield "double", Precision.FP64
    if hardware.device.has_bf16:
        yield "c10::BFloat16", Precision.HALF
    if hardware.device.has_tf32:
        yield "float", Precision.TF32
