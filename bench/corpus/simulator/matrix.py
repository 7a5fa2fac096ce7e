"""Matrix products and attention: which kernels they run, and for how long."""

from __future__ import annotations

from math import ceil, prod

from torchtraceap.analyzer.timeline.kernel_names import Precision
from torchtraceap.analyzer.trace.model import Dims

from . import names
from .hardware import Hardware
from .kernels import Kernel, Plan
from .library import HALF, Library
from .roofline import Product, Roofline
from .shapes import Call


class MatrixKernels:
    """Plans of products and attention on one device."""

    def __init__(self, hardware: Hardware, roofline: Roofline, library: Library) -> None:
        self._hardware = hardware
        self._roofline = roofline
        self._library = library

    def product(self, call: Call, first: int, biased: bool) -> Plan | None:
        """`mm`, `addmm`, `bmm` and `baddbmm`; `first` is the argument that holds the first factor."""
        left, right = call.shape(first), call.shape(first + 1)
        if len(left) < 2 or len(right) < 2 or not prod(left) or not prod(right):
            return None
        batch = left[0] if len(left) == 3 else 1
        rows, inner, columns = left[-2], left[-1], right[-1]
        dtype = names.element_of(call.type(first))
        layout = _layout(call.stride(first), call.stride(first + 1))
        kernels = self._product(rows, columns, inner, batch, dtype, layout, biased)
        return Plan(kernels, host_us=9.0)

    def vector_product(self, call: Call) -> Plan | None:
        """`mv` and `dot`."""
        sizes = call.shape(0)
        if not sizes:
            return None
        dtype = names.element_of(call.type(0))
        moved = prod(sizes) * call.element_bytes(0)
        name = f"void gemv2T_kernel_val<int, int, {dtype}, {dtype}, {dtype}, float, 128, 16, 4, 4, false, false>()"
        return Plan(
            (self._library.kernel(name, self._roofline.moving(moved, 0.6, sizes), 1 + prod(sizes) // 4096),),
            host_us=7.0,
        )

    def _product(
        self, rows: int, columns: int, inner: int, batch: int, dtype: str, layout: str, biased: bool
    ) -> tuple[Kernel, ...]:
        precision = self._library.precision(dtype)
        width = 4 if dtype == "float" else 2 if dtype in HALF else 8
        step = 8 if width == 2 else 4
        leading = {"tn": (inner, inner, columns), "nn": (inner, columns, columns), "nt": (rows, columns, columns)}[
            layout
        ]
        aligned = all(size % step == 0 for size in leading)
        quality = 1.0 if aligned or precision in (Precision.FP32, Precision.FP64) else 0.42
        moved = float(width * batch * (rows * inner + inner * columns + rows * columns))
        timing = self._roofline.product(rows, columns, inner, precision, quality, moved, batch)
        name = names.gemm(self._hardware, dtype, precision, timing.tile, layout, aligned, biased)
        return self._with_reduction(name, timing, dtype, rows * columns)

    def _with_reduction(self, name: str, timing: Product, dtype: str, outputs: int) -> tuple[Kernel, ...]:
        if timing.split == 1 or self._hardware.is_amd:
            return (
                self._library.kernel(
                    name, timing.duration_us, timing.blocks, registers=168, shared=49152, library=True
                ),
            )
        reduction_us = self._roofline.moving(outputs * 4.0 * timing.split, 0.7, ("split", outputs, timing.split))
        main_us = max(timing.duration_us - 1.5, self._roofline.fixed_us)
        return (
            self._library.kernel(name, main_us, timing.blocks, registers=168, shared=49152, library=True),
            self._library.kernel(names.split_reduction(dtype), reduction_us, 1 + outputs // 4096, library=True),
        )

    def attention(self, call: Call, first: int, backward: bool) -> Plan | None:
        """The fused attention that PyTorch would pick on the device."""
        query, key, value = (call.shape(first + k) for k in range(3))
        if min(len(query), len(key), len(value)) != 4:
            return None
        dtype = names.element_of(call.type(first))
        masked = bool(call.shape(8 if backward else 5))
        capable = self._hardware.is_amd or self._hardware.device.capability >= (8, 0)
        flash = dtype in HALF and capable and not masked and query[-1] <= 256
        duration_us = self._attention_us(query, key, dtype, flash, backward)
        blocks = prod(query[:2]) * ceil(query[2] / 128)
        word = "flash" if flash else "efficient"
        direction = "backward" if backward else "forward"
        suffix = "_backward" if backward else ""
        if flash or self._hardware.is_amd:
            kernels = self._flash(dtype, query, duration_us, blocks, backward)
        else:
            name = names.efficient_attention(self._hardware, dtype, query[-1], backward)
            kernels = (self._library.kernel(name, duration_us, blocks, registers=168, shared=65536),)
        inner = Plan(kernels, rename=f"aten::_{word}_attention_{direction}", host_us=12.0)
        return Plan((), rename=f"aten::_scaled_dot_product_{word}_attention{suffix}", inner=(inner,), host_us=9.0)

    def _flash(self, dtype: str, query: Dims, duration_us: float, blocks: int, backward: bool) -> tuple[Kernel, ...]:
        head = min(size for size in (32, 64, 96, 128, 192, 256) if size >= query[-1])
        if not backward:
            name = names.flash_forward(self._hardware, dtype, head)
            return (self._library.kernel(name, duration_us, blocks, registers=255, shared=49152, library=True),)
        all_names = names.flash_backward(self._hardware, dtype, head)
        small_us = self._roofline.moving(prod(query) * 6.0, 0.6, ("flash", query))
        heavy = [False, True, False] if not self._hardware.is_amd else [False, True, True]
        return tuple(
            self._library.kernel(
                name, duration_us / sum(heavy) if is_heavy else small_us, blocks, registers=255, library=True
            )
            for name, is_heavy in zip(all_names, heavy, strict=True)
        )

    def _attention_us(self, query: Dims, key: Dims, dtype: str, flash: bool, backward: bool) -> float:
        precision = self._library.precision(dtype)
        newer = self._hardware.device.capability >= (9, 0)
        efficiency = 0.14 if self._hardware.is_amd else 0.4 if newer and flash else 0.55 if flash else 0.3
        passes = 5.0 * 0.85 if backward else 2.0
        units = self._hardware.units
        blocks = prod(query[:2]) * ceil(query[2] / 128)
        rate = self._roofline.flops_per_us(precision) / units * efficiency
        flops = passes * 2.0 * 128 * key[2] * query[-1]
        step_us = (12.0 if self._hardware.is_amd else 3.2) * ceil(key[2] / 128) * (2.0 if backward else 1.0)
        busy_us = ceil(blocks / units) * max(flops / rate, step_us)
        return (
            self._roofline.fixed_us + 1.5 + busy_us * self._roofline.spread(("attention", query, key, dtype, backward))
        )


def _layout(left: Dims, right: Dims) -> str:
    """cuBLAS's letters for a product of two row-major or transposed factors."""
    left_plain = not left or left[-1] == 1
    right_plain = not right or right[-1] == 1
    return "nt" if not left_plain else "nn" if right_plain else "tn"
