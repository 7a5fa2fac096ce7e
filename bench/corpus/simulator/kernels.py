"""What a device is given to do by one operator, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Queue(Enum):
    """Which stream work goes to."""

    COMPUTE = 0
    COMMUNICATION = 1


class Work(Enum):
    """Categories of device events, by their names in the file."""

    KERNEL = "kernel"
    MEMCPY = "gpu_memcpy"
    MEMSET = "gpu_memset"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One piece of device work."""

    name: str
    duration_us: float
    """Typical; every launch varies round it."""
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    shared_bytes: int = 0
    work: Work = Work.KERNEL
    call: str = "cudaLaunchKernel"
    """The runtime call that launches it."""
    bytes: int = 0
    """Copied or filled."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operator does on a device: an optional other name, its own work, and operators inside it."""

    kernels: tuple[Kernel, ...] = ()
    rename: str = ""
    """The name that the operator has on a device; "" where it is the same."""
    inner: tuple[Plan, ...] = ()
    """Operators that a device's implementation calls and the CPU's doesn't. They come after the plan's own work."""
    host_us: float = 5.0
    """The host's own time in it, launches left out."""
    waits: bool = False
    """Whether the host waits until the work is done."""
