"""The devices that are simulated. Peaks come from the analyzer's device table; the rest from the vendors' data sheets.

Interconnects: NVLink bus bandwidth as nccl-tests reports it on 8-device servers, xGMI on Instinct, and PCIe where a
card has no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from torchtraceap.analyzer.timeline.devices import known_device
from torchtraceap.analyzer.timeline.model import Device, Vendor


@dataclass(frozen=True, slots=True)
class Hardware:
    """One device, and the host's side of it."""

    name: str
    """As `deviceProperties` gives it."""
    device: Device
    units: int
    """Multiprocessors or compute units."""
    memory_bytes: int
    cache_bytes: int
    shared_bytes: int
    """Shared memory of a multiprocessor."""
    threads: int
    """Resident threads of a multiprocessor."""
    host_gb_per_s: float
    """Copies from and to pinned memory."""
    link_gb_per_s: float
    """Bus bandwidth of collectives."""

    @property
    def usual_batch(self) -> int:
        """How many times a T4's batch people give the device: more memory and more speed ask for more work."""
        return 1 << max(0, round(log2(self.device.memory_gb_per_s / 320)))

    @property
    def is_amd(self) -> bool:
        """Whether kernels and runtime calls are ROCm's."""
        return self.device.vendor is Vendor.AMD

    @property
    def launch_call(self) -> str:
        """The runtime call that launches most kernels."""
        return "hipLaunchKernel" if self.is_amd else "cudaLaunchKernel"

    @property
    def warp(self) -> int:
        """Threads of a warp or wavefront."""
        return 64 if self.is_amd else 32

    @property
    def architecture(self) -> str:
        """The word that NVIDIA's libraries use in kernel names."""
        major, minor = self.device.capability
        if major >= 9:
            return "sm90"
        return {(7, 0): "volta", (7, 5): "turing"}.get((major, minor), "ampere")


# name, units, memory GiB, cache MiB, shared memory KiB of a unit, threads of a unit, host GB/s, link GB/s
_ROWS: tuple[tuple[str, int, float, float, int, int, float, float], ...] = (
    ("Tesla V100-SXM2-16GB", 80, 15.8, 6, 96, 2048, 11.5, 130),
    ("Tesla T4", 40, 14.6, 4, 64, 1024, 6.2, 6),
    ("NVIDIA A100-SXM4-40GB", 108, 39.4, 40, 164, 2048, 24, 230),
    ("NVIDIA A100-SXM4-80GB", 108, 79.2, 40, 164, 2048, 24, 230),
    ("NVIDIA GeForce RTX 3090", 82, 23.7, 6, 100, 1536, 24, 10),
    ("NVIDIA GeForce RTX 4090", 128, 23.6, 72, 100, 1536, 25, 11),
    ("NVIDIA A10", 72, 22.1, 6, 100, 1536, 24, 11),
    ("NVIDIA L4", 58, 22.0, 48, 100, 1536, 12.5, 8),
    ("NVIDIA H100 80GB HBM3", 132, 79.2, 50, 228, 2048, 52, 360),
    ("AMD Instinct MI210", 104, 64, 8, 64, 2048, 25, 90),
    ("AMD Instinct MI250X", 110, 64, 8, 64, 2048, 25, 110),
    ("AMD Instinct MI300X", 304, 191.5, 256, 64, 2048, 50, 300),
)


def hardware_of(name: str) -> Hardware:
    """The device of this name; raises `ValueError` where there is none.

    Known are the names of the analyzer's device table (`"H100 SXM"`, `"T4"`), the devices' own, and parts of these.
    """
    for hardware in _ALL:
        if name in (hardware.name, hardware.device.name):
            return hardware
    for hardware in _ALL:
        if all(word in hardware.name for word in name.split()):
            return hardware
    raise ValueError(f"unknown device {name!r}; known are {', '.join(DEVICES)}")


def _hardware(row: tuple[str, int, float, float, int, int, float, float]) -> Hardware:
    name, units, memory_gib, cache_mib, shared_kib, threads, host, link = row
    device = known_device(name, Vendor.AMD if "AMD" in name else Vendor.NVIDIA)
    if device is None:
        raise ValueError(f"no peaks are known of {name}")
    return Hardware(
        name=name,
        device=device,
        units=units,
        memory_bytes=int(memory_gib * 2**30),
        cache_bytes=int(cache_mib * 2**20),
        shared_bytes=shared_kib << 10,
        threads=threads,
        host_gb_per_s=host,
        link_gb_per_s=link,
    )


_ALL = tuple(_hardware(row) for row in _ROWS)
DEVICES = tuple(hardware.device.name for hardware in _ALL)
"""The devices that can be simulated, by their names in the analyzer's table."""
