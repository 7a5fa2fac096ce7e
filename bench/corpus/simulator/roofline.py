"""How long kernels take: work over attainable rates, with the losses that size, tiling and alignment bring.

A matrix kernel computes its output in tiles, one or two at a time on each multiprocessor; whole rounds ("waves") count,
so that small products leave most of the device idle. The tile is chosen as libraries do: the one that is done first.
Other kernels move bytes at a share of the bandwidth that depends on what they do. See the README for the calibration.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil, exp
from operator import mul

from torchtraceap.analyzer.timeline.kernel_names import Precision

from .hardware import Hardware
from .kernels import Kernel

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 32))
_TILE_EFFICIENCY = {(256, 128): 0.76, (128, 256): 0.76, (128, 128): 0.72, (128, 64): 0.6, (64, 128): 0.6}
_SMALL_TILE_EFFICIENCY = {(64, 64): 0.42, (32, 32): 0.15}
_SIMT_EFFICIENCY = {(128, 128): 0.82, (128, 64): 0.76, (64, 128): 0.76, (64, 64): 0.66, (32, 32): 0.4}

_MAX_SPLIT = 16
_BYTES_OF_BLOCK = 8192
_SPREAD = 0.13
"""Standard deviation of the logarithm of a shape's own efficiency."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product's timing and the tiling that gives it."""

    duration_us: float
    tile: tuple[int, int]
    split: int
    """Into how many parts the inner dimension was cut; more than 1 costs a reduction."""
    blocks: int


class Roofline:
    """Durations on one device. Shapes keep the efficiency that they were first given."""

    def __init__(self, hardware: Hardware, rng: random.Random) -> None:
        self.hardware = hardware
        self._rng = rng
        self._spread: dict[Hashable, float] = {}
        self._bytes_per_us = hardware.device.memory_gb_per_s * 1e3
        self.fixed_us = 2.5 if hardware.is_amd else 1.4
        """What an empty kernel takes."""

    def spread(self, shape: Hashable) -> float:
        """The factor by which kernels of this shape differ from the model."""
        factor = self._spread.get(shape)
        if factor is None:
            factor = self._spread[shape] = exp(self._rng.gauss(0.0, _SPREAD))
        return factor

    def flops_per_us(self, precision: Precision) -> float:
        """The peak rate for a precision."""
        device = self.hardware.device
        fp32 = device.fp32_tflops * 1e6
        if precision is Precision.HALF:
            return device.half_tflops * 1e6
        if precision is Precision.TF32:
            return device.tf32_tflops * 1e6
        if precision is Precision.FP64:
            full_rate = self.hardware.is_amd or device.capability in ((7, 0), (8, 0), (9, 0))
            return fp32 / 2 if full_rate else fp32 / 64
        return fp32

    def moving(self, moved_bytes: float, share: float, shape: Hashable) -> float:
        """Time of a kernel that is bound by moving bytes at a share of the bandwidth."""
        in_cache = moved_bytes < 0.4 * self.hardware.cache_bytes
        rate = self._bytes_per_us * share * (1.35 if in_cache else 1.0)
        # Too few bytes in flight to fill the memory system.
        ramp_us = 1.6 if self.hardware.is_amd else 0.25
        return self.fixed_us + (moved_bytes / rate + ramp_us * min(1.0, moved_bytes / 5e5)) * self.spread(shape)

    def product(
        self,
        rows: int,
        columns: int,
        inner: int,
        precision: Precision,
        quality: float,
        moved_bytes: float,
        batch: int = 1,
    ) -> Product:
        """`batch` products of (rows x inner) by (inner x columns), at `quality` times a good kernel's efficiency."""
        matrix_unit = precision in (Precision.HALF, Precision.TF32)
        units, peak = self.hardware.units, self.flops_per_us(precision)
        best: Product | None = None
        for tile in TILES:
            efficiency = self._tile_efficiency(tile, matrix_unit)
            if not efficiency:
                continue
            blocks = ceil(rows / tile[0]) * ceil(columns / tile[1]) * batch
            split = self._split(blocks, inner)
            waves = ceil(blocks * split / units)
            part = ceil(inner / split)
            flops = 2.0 * mul(*tile) * part
            # A step through the inner dimension costs its latency, however fast the unit is.
            latency_us = part / 64 * self._step_latency_us(tile, matrix_unit)
            busy_us = waves * max(flops / (peak / units * efficiency * quality), latency_us)
            reduction_us = 0.0 if split == 1 else 1.5 + rows * columns * batch * 4.0 * split / self._bytes_per_us
            duration = busy_us + reduction_us
            if best is None or duration < best.duration_us:
                best = Product(duration, tile, split, blocks * split)
        assert best is not None
        moving_us = moved_bytes / (self._bytes_per_us * 0.75)
        shape = (rows, columns, inner, precision, batch, quality)
        prologue_us = 2.6 if self.hardware.is_amd else 2.0
        duration = self.fixed_us + prologue_us + max(best.duration_us, moving_us) * self.spread(shape)
        return Product(duration, best.tile, best.split, best.blocks)

    def _tile_efficiency(self, tile: tuple[int, int], matrix_unit: bool) -> float:
        if not matrix_unit:
            return _SIMT_EFFICIENCY.get(tile, 0.0)
        efficiency = _TILE_EFFICIENCY.get(tile) or _SMALL_TILE_EFFICIENCY[tile]
        return efficiency * (0.62 if self.hardware.is_amd else 1.0)

    def _step_latency_us(self, tile: tuple[int, int], matrix_unit: bool) -> float:
        base = 0.6 if not matrix_unit else 0.28 if self.hardware.is_amd else 0.38
        return base * (1.0 if mul(*tile) >= 128 * 128 else 0.8)

    def _split(self, blocks: int, inner: int) -> int:
        free = self.hardware.units // max(blocks, 1)
        return max(1, min(free, inner // 512, _MAX_SPLIT)) if free >= 4 else 1


def moving_kernel(
    roofline: Roofline, name: str, moved_bytes: float, share: float, shape: Hashable, extra_us: float = 0.0
) -> Kernel:
    """A kernel of PyTorch's own that is bound by moving bytes."""
    duration = roofline.moving(moved_bytes, share, (name[:60], shape)) + extra_us
    blocks = max(1, int(moved_bytes / _BYTES_OF_BLOCK))
    return Kernel(name, duration, (blocks, 1, 1), (128, 1, 1), call=roofline.hardware.launch_call)
