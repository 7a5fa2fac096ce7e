"""The device table, and which of its rows a trace ran on.

Peaks are dense rates from the vendors' own documents: NVIDIA data sheets of V100, T4, A100, A30, A40, A10, L4,
L40(S), H100, H200 and HGX B200; the Turing (2018), GA102 (2020) and Ada (2022) architecture white papers for RTX
cards, whose half rate is the one with fp32 accumulation, as PyTorch uses it; AMD data sheets of Instinct MI100, MI210,
MI250(X), MI300A/X, MI325X and MI355X. An MI250 counts per die, because that is what PyTorch calls a device. Sparse
rates are never used.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..trace.model import DEVICE_CATEGORIES, Category, DeviceProperties, Trace
from .model import Device, Vendor

_NAN = float("nan")

# name, pattern, capability, fp32 TFLOP/s, TF32 TFLOP/s, half TFLOP/s, GB/s
_NVIDIA: tuple[tuple[str, str, tuple[int, int], float, float, float, float], ...] = (
    ("B200", r"\bG?B[23]00\b", (10, 0), 75, 1125, 2250, 7700),
    ("H200", r"\bG?H200\b", (9, 0), 67, 494.7, 989.4, 4800),
    ("H100 PCIe", r"\bH100 PCIe\b", (9, 0), 51, 378, 756, 2000),
    ("H100 NVL", r"\bH100 NVL\b", (9, 0), 60, 417, 835, 3900),
    ("H100 SXM", r"\bH[18]00\b", (9, 0), 67, 494.7, 989.4, 3350),
    ("L4", r"\bL4\b", (8, 9), 30.3, 60, 121, 300),
    ("L40S", r"\bL40S\b", (8, 9), 91.6, 183, 362, 864),
    ("L40", r"\bL40\b", (8, 9), 90.5, 90.5, 181, 864),
    ("RTX 6000 Ada", r"RTX 6000 Ada", (8, 9), 91.1, 182, 364, 960),
    ("RTX 4090", r"RTX 4090", (8, 9), 82.6, 82.6, 165.2, 1008),
    ("RTX 4080", r"RTX 4080", (8, 9), 48.7, 48.7, 97.5, 717),
    ("RTX 4070 Ti", r"RTX 4070 Ti", (8, 9), 40.1, 40.1, 80.2, 504),
    ("RTX 4070", r"RTX 4070", (8, 9), 29.1, 29.1, 58.3, 504),
    ("RTX 4060 Ti", r"RTX 4060 Ti", (8, 9), 22.1, 22.1, 44.1, 288),
    ("RTX 4060", r"RTX 4060", (8, 9), 15.1, 15.1, 30.2, 272),
    ("RTX A6000", r"RTX A6000", (8, 6), 38.7, 77.4, 154.8, 768),
    ("RTX A5000", r"RTX A5000", (8, 6), 27.8, 55.6, 111.1, 768),
    ("RTX A4000", r"RTX A4000", (8, 6), 19.2, 38.4, 76.7, 448),
    ("A40", r"\bA40\b", (8, 6), 37.4, 74.8, 149.7, 696),
    ("A10", r"\bA10G?\b", (8, 6), 31.2, 62.5, 125, 600),
    ("RTX 3090 Ti", r"RTX 3090 Ti", (8, 6), 40, 40, 80, 1008),
    ("RTX 3090", r"RTX 3090", (8, 6), 35.6, 35.6, 71, 936),
    ("RTX 3080 Ti", r"RTX 3080 Ti", (8, 6), 34.1, 34.1, 68.2, 912),
    ("RTX 3080", r"RTX 3080", (8, 6), 29.8, 29.8, 59.5, 760),
    ("RTX 3070", r"RTX 3070", (8, 6), 20.3, 20.3, 40.6, 448),
    ("RTX 3060 Ti", r"RTX 3060 Ti", (8, 6), 16.2, 16.2, 32.4, 448),
    ("RTX 3060", r"RTX 3060", (8, 6), 12.7, 12.7, 25.5, 360),
    ("A30", r"\bA30\b", (8, 0), 10.3, 82, 165, 933),
    ("A100 80GB PCIe", r"\bA[18]00 80GB PCIe", (8, 0), 19.5, 156, 312, 1935),
    ("A100 80GB", r"\bA[18]00-SXM\d?-80GB", (8, 0), 19.5, 156, 312, 2039),
    ("A100", r"\bA[18]00\b", (8, 0), 19.5, 156, 312, 1555),
    ("T4", r"\bT4\b", (7, 5), 8.1, _NAN, 65, 320),
    ("TITAN RTX", r"TITAN RTX", (7, 5), 16.3, _NAN, 130.5, 672),
    ("RTX 2080 Ti", r"RTX 2080 Ti", (7, 5), 13.4, _NAN, 53.8, 616),
    ("RTX 2080", r"RTX 2080", (7, 5), 10.1, _NAN, 40.3, 448),
    ("RTX 2070", r"RTX 2070", (7, 5), 7.5, _NAN, 29.9, 448),
    ("RTX 2060", r"RTX 2060", (7, 5), 6.5, _NAN, 25.8, 336),
    ("V100 PCIe", r"\bV100-PCIE", (7, 0), 14, _NAN, 112, 900),
    ("V100", r"\bV100\b", (7, 0), 15.7, _NAN, 125, 900),
    ("P100", r"\bP100\b", (6, 0), 10.6, _NAN, _NAN, 732),
)

_AMD: tuple[tuple[str, str, tuple[int, int], float, float, float, float], ...] = (
    ("MI355X", r"MI35[05]X", (9, 5), 157.3, _NAN, 2516, 8000),
    ("MI325X", r"MI325X", (9, 4), 163.4, 653.7, 1307.4, 6000),
    ("MI300A", r"MI300A", (9, 4), 122.6, 490.3, 980.6, 5300),
    ("MI300X", r"MI30[08]X?", (9, 4), 163.4, 653.7, 1307.4, 5300),
    ("MI250X", r"MI250X", (9, 0), 23.9, _NAN, 191.5, 1638),
    ("MI250", r"MI250", (9, 0), 22.6, _NAN, 181, 1638),
    ("MI210", r"MI210", (9, 0), 22.6, _NAN, 181, 1638),
    ("MI100", r"MI100", (9, 0), 23.1, _NAN, 184.6, 1229),
)

_ONLY_PART = {
    (Vendor.NVIDIA, (7, 0)): "V100",
    (Vendor.NVIDIA, (10, 0)): "B200",
    (Vendor.AMD, (9, 0), 104): "MI210",
    (Vendor.AMD, (9, 4), 304): "MI300X",
    (Vendor.AMD, (9, 4), 228): "MI300A",
    (Vendor.NVIDIA, (8, 0), 108): "A100",
    (Vendor.NVIDIA, (8, 0), 56): "A30",
    (Vendor.NVIDIA, (9, 0), 132): "H100 SXM",
    (Vendor.NVIDIA, (9, 0), 114): "H100 PCIe",
}
"""Parts that capability, or capability and number of multiprocessors, give away when the name does not."""

_H200_MEMORY_BYTES = 120e9
"""An H200 differs from an H100 SXM in memory alone."""

_CAPABILITY_OF_PREFIX = tuple(
    (re.compile(pattern), capability)
    for pattern, capability in (
        (r"sm100_|sm_100|blackwell", (10, 0)),
        (r"sm90_|^nvjet_|cutlass3x_sm90|hopper", (9, 0)),
        (r"sm89_|^ada_", (8, 9)),
        (r"sm86_", (8, 6)),
        (r"sm80_|(^|_)ampere_|cutlass_80_", (8, 0)),
        (r"sm75_|(^|_)turing_|cutlass_75_", (7, 5)),
        (r"sm70_|(^|_)volta_|cutlass_70_", (7, 0)),
    )
)
"""Newest first. A kernel built for a generation runs on it and later ones, so the newest seen is a lower bound."""

_AMD_KERNEL = re.compile(r"^Cijk_|^igemm_\w+gtc|^_ZN2ck|rocclr|^miopen|^MIOpen|gfx9|^hip")
_NVIDIA_WORD = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|TITAN|\bRTX\b|\bGTX\b")
_AMD_WORD = re.compile(r"AMD|Instinct|Radeon|\bgfx\d+")
_LAUNCH = re.compile(r"^(cu|cuda|hip)\w*(Launch|Memcpy|Memset)")


def find_device(trace: Trace) -> Device:
    """The device that the compute ran on.

    Named by `deviceProperties`; where those are missing, the vendor comes from runtime calls and kernel names and the
    generation from kernel names. Unknown devices keep what is known of them, with NaN for peaks. A trace without
    device work and without launches ran on the CPU, whatever its properties list.
    """
    properties = _properties_in_use(trace)
    if not _uses_accelerator(trace):
        return Device("CPU", Vendor.CPU)
    vendor = _vendor(trace, properties)
    capability = _capability(trace, properties, vendor)
    name = properties.name if properties else ""
    known = known_device(name, vendor) or _by_capability(properties, vendor, capability)
    device = known or Device(name or _anonymous(vendor), vendor)
    return replace(
        device,
        name=name or device.name,
        capability=capability if capability != (0, 0) else device.capability,
        **_abilities(vendor, capability if capability != (0, 0) else device.capability, name),
    )


def known_device(name: str, vendor: Vendor) -> Device | None:
    """The row of the device table for a device that calls itself `name`, with its abilities; None if there is none."""
    table = {Vendor.NVIDIA: _NVIDIA, Vendor.AMD: _AMD}.get(vendor, ())
    return next((_device(row, vendor) for row in table if re.search(row[1], name)), None)


def _properties_in_use(trace: Trace) -> DeviceProperties | None:
    if not trace.info.devices:
        return None
    kernels = trace.rows(Category.KERNEL)
    used = int(trace.device[kernels[0]]) if len(kernels) else 0
    return next((p for p in trace.info.devices if p.index == used), trace.info.devices[0])


def _uses_accelerator(trace: Trace) -> bool:
    if len(trace.rows(*DEVICE_CATEGORIES, Category.COUNTER_RANGE)):
        return True
    runtime_names = {trace.names[i] for i in set(trace.name[trace.rows(Category.RUNTIME)].tolist())}
    return any(_LAUNCH.match(name) for name in runtime_names)


def _names(trace: Trace, *categories: Category) -> list[str]:
    return [trace.names[i] for i in set(trace.name[trace.rows(*categories)].tolist())]


def _vendor(trace: Trace, properties: DeviceProperties | None) -> Vendor:
    name = properties.name if properties else ""
    if _AMD_WORD.search(name):
        return Vendor.AMD
    if _NVIDIA_WORD.search(name):
        return Vendor.NVIDIA
    if any(n.startswith("hip") for n in _names(trace, Category.RUNTIME)):
        return Vendor.AMD
    if any(_AMD_KERNEL.search(n) for n in _names(trace, Category.KERNEL)):
        return Vendor.AMD
    if any(n.startswith("cu") for n in _names(trace, Category.RUNTIME)):
        return Vendor.NVIDIA
    if properties and properties.warp_size in (32, 64):
        return Vendor.NVIDIA if properties.warp_size == 32 else Vendor.AMD
    if any(n.startswith(("void ", "Memcpy ")) for n in _names(trace, *DEVICE_CATEGORIES)):
        return Vendor.NVIDIA
    return Vendor.OTHER if name else Vendor.UNKNOWN


def _capability(trace: Trace, properties: DeviceProperties | None, vendor: Vendor) -> tuple[int, int]:
    if properties and properties.compute_major:
        return properties.compute_major, properties.compute_minor
    if vendor is not Vendor.NVIDIA:
        return 0, 0
    names = _names(trace, Category.KERNEL)
    return next((c for pattern, c in _CAPABILITY_OF_PREFIX if any(pattern.search(n) for n in names)), (0, 0))


def _by_capability(properties: DeviceProperties | None, vendor: Vendor, capability: tuple[int, int]) -> Device | None:
    units = properties.multiprocessors if properties else 0
    part = _ONLY_PART.get((vendor, capability)) or _ONLY_PART.get((vendor, capability, units))
    if part == "H100 SXM" and properties and properties.total_memory_bytes > _H200_MEMORY_BYTES:
        part = "H200"
    table = _NVIDIA if vendor is Vendor.NVIDIA else _AMD
    return next((_device(row, vendor) for row in table if row[0] == part), None)


def _device(row: tuple[str, str, tuple[int, int], float, float, float, float], vendor: Vendor) -> Device:
    name, _, capability, fp32, tf32, half, bandwidth = row
    abilities = _abilities(vendor, capability, name)
    return Device(name, vendor, capability, fp32, tf32, half, bandwidth, **abilities)


def _abilities(vendor: Vendor, capability: tuple[int, int], name: str) -> dict[str, bool]:
    """What the hardware can do. On AMD, PyTorch uses TF32 only behind an experimental switch: it counts as absent."""
    if vendor is Vendor.NVIDIA:
        cores = capability >= (7, 0) and not re.search(r"GTX 16|\bT[45]00\b|MX\d{3}", name)
        return {"has_tensor_cores": cores, "has_tf32": capability >= (8, 0), "has_bf16": capability >= (8, 0)}
    if vendor is Vendor.AMD:
        matrix = capability >= (9, 0) or re.search(r"MI\d{3}", name) is not None
        return {"has_tensor_cores": matrix, "has_tf32": False, "has_bf16": matrix}
    return {"has_tensor_cores": False, "has_tf32": False, "has_bf16": False}


def _anonymous(vendor: Vendor) -> str:
    return f"unknown {vendor.name} device" if vendor in (Vendor.NVIDIA, Vendor.AMD) else "unknown device"
