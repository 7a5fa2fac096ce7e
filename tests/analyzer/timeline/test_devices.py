"""The device that a trace ran on."""

import math

import pytest

from tests.builders import TraceBuilder
from torchtraceap.analyzer.timeline.devices import find_device
from torchtraceap.analyzer.timeline.model import Device, Vendor
from torchtraceap.analyzer.trace.model import Category, DeviceProperties


def device_of(
    *properties: DeviceProperties, kernel: str = "void k<float>()", launch: str = "cudaLaunchKernel"
) -> Device:
    builder = TraceBuilder(devices=properties)
    with builder.op("aten::mm"):
        builder.kernel(kernel, us=10, launch=launch)
    return find_device(builder.build())


def named(
    name: str, major: int = 0, minor: int = 0, units: int = 0, warp: int = 0, memory: int = 0
) -> DeviceProperties:
    return DeviceProperties(0, name, memory, major, minor, units, warp)


@pytest.mark.parametrize(
    ("name", "capability", "fp32", "half", "bandwidth"),
    [
        ("Tesla V100-SXM2-32GB", (7, 0), 15.7, 125, 900),
        ("Tesla V100-PCIE-16GB", (7, 0), 14, 112, 900),
        ("Tesla T4", (7, 5), 8.1, 65, 320),
        ("NVIDIA GeForce RTX 2080 Ti", (7, 5), 13.4, 53.8, 616),
        ("NVIDIA A100-SXM4-40GB", (8, 0), 19.5, 312, 1555),
        ("NVIDIA A100-SXM4-80GB", (8, 0), 19.5, 312, 2039),
        ("NVIDIA A100-PG509-200", (8, 0), 19.5, 312, 1555),
        ("NVIDIA RTX A4000", (8, 6), 19.2, 76.7, 448),
        ("NVIDIA GeForce RTX 3090", (8, 6), 35.6, 71, 936),
        ("NVIDIA GeForce RTX 3080 Ti", (8, 6), 34.1, 68.2, 912),
        ("NVIDIA GeForce RTX 4090", (8, 9), 82.6, 165.2, 1008),
        ("NVIDIA L4", (8, 9), 30.3, 121, 300),
        ("NVIDIA L40S", (8, 9), 91.6, 362, 864),
        ("NVIDIA H100 80GB HBM3", (9, 0), 67, 989.4, 3350),
        ("NVIDIA H100 PCIe", (9, 0), 51, 756, 2000),
        ("NVIDIA H200", (9, 0), 67, 989.4, 4800),
        ("NVIDIA B200", (10, 0), 75, 2250, 7700),
    ],
)
def test_nvidia_by_name(name: str, capability: tuple[int, int], fp32: float, half: float, bandwidth: float) -> None:
    device = device_of(named(name, *capability, units=100, warp=32))
    assert (device.name, device.vendor, device.capability) == (name, Vendor.NVIDIA, capability)
    assert (device.fp32_tflops, device.half_tflops, device.memory_gb_per_s) == (fp32, half, bandwidth)
    assert device.has_tensor_cores
    assert device.has_tf32 == device.has_bf16 == (capability >= (8, 0))
    assert math.isnan(device.tf32_tflops) != device.has_tf32


@pytest.mark.parametrize(
    ("name", "capability", "half"),
    [
        ("AMD Instinct MI210", (9, 0), 181),
        ("AMD Instinct MI250X", (9, 0), 191.5),
        ("AMD Instinct MI250", (9, 0), 181),
        ("AMD Instinct MI300X VF", (9, 4), 1307.4),
    ],
)
def test_amd_by_name(name: str, capability: tuple[int, int], half: float) -> None:
    device = device_of(named(name, *capability, units=100, warp=64), launch="hipLaunchKernel")
    assert (device.vendor, device.half_tflops) == (Vendor.AMD, half)
    assert device.has_tensor_cores and device.has_bf16 and not device.has_tf32


@pytest.mark.parametrize(
    ("properties", "half"),
    [
        (named("NVIDIA PG509-210", 8, 0, 108, 32), 312),
        (named("NVIDIA PG506", 9, 0, 132, 32, memory=85 * 10**9), 989.4),
        (named("", 7, 0, 80, 32), 125),
        (named("AMD Radeon Graphics", 9, 0, 104, 64), 181),
    ],
)
def test_by_capability_where_the_name_says_nothing(properties: DeviceProperties, half: float) -> None:
    assert device_of(properties).half_tflops == half


def test_h200_is_told_from_h100_by_its_memory() -> None:
    device = device_of(named("NVIDIA Graphics Device", 9, 0, 132, 32, memory=150 * 10**9))
    assert device.memory_gb_per_s == 4800


@pytest.mark.parametrize(
    ("kernel", "capability", "has_tf32"),
    [
        ("volta_sgemm_128x64_nn", (7, 0), False),
        ("turing_fp16_s1688gemm_fp16_128x128_nn", (7, 5), False),
        ("ampere_sgemm_128x64_nn", (8, 0), True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", (9, 0), True),
        ("void k<float>()", (0, 0), False),
    ],
)
def test_without_properties_kernels_tell_the_generation(
    kernel: str, capability: tuple[int, int], has_tf32: bool
) -> None:
    device = device_of(kernel=kernel)
    assert (device.vendor, device.capability, device.has_tf32) == (Vendor.NVIDIA, capability, has_tf32)


def test_unknown_device_keeps_what_is_known() -> None:
    device = device_of(named("NVIDIA GeForce RTX 9990", 12, 0, 64, 32))
    assert (device.name, device.capability) == ("NVIDIA GeForce RTX 9990", (12, 0))
    assert device.has_tensor_cores and math.isnan(device.half_tflops)


def test_turing_without_tensor_cores() -> None:
    assert not device_of(named("NVIDIA GeForce GTX 1660 Ti", 7, 5, 24, 32)).has_tensor_cores


def test_amd_without_properties_by_runtime_or_kernels() -> None:
    assert device_of(launch="hipLaunchKernel").vendor is Vendor.AMD
    assert device_of(kernel="Cijk_Ailk_Bljk_SB_MT64x64x16_SN", launch="launch").vendor is Vendor.AMD


def test_the_device_in_use_is_described() -> None:
    idle = DeviceProperties(1, "Tesla T4", 16 << 30, 7, 5, 40, 32)
    used = DeviceProperties(0, "NVIDIA A100-SXM4-40GB", 40 << 30, 8, 0, 108, 32)
    assert device_of(idle, used).name == "NVIDIA A100-SXM4-40GB"


def test_cpu_trace_that_lists_a_device() -> None:
    builder = TraceBuilder(devices=[named("NVIDIA A100-SXM4-40GB", 8, 0, 108, 32)])
    builder.leaf("aten::mm")
    device = find_device(builder.build())
    assert device.is_cpu and not device.has_tensor_cores and math.isnan(device.fp32_tflops)


def test_other_accelerator() -> None:
    builder = TraceBuilder(devices=[named("ARTEMIS")])
    builder.device_work(Category.KERNEL, "pe_exe", us=5, launched=builder.launch("runFunction"))
    device = find_device(builder.build())
    assert (device.name, device.vendor) == ("ARTEMIS", Vendor.OTHER)
