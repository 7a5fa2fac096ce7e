"""Matrix products, convolutions and attention: which kernels they run, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from torchtraceap.analyzer.timeline.convolution_costs import convolution_output
from torchtraceap.analyzer.timeline.kernel_names import Precision
from torchtraceap.analyzer.trace.model import Dims

from . import algorithms, names
from .hardware import Hardware
from .kernels import Kernel, Plan, Work
from .roofline import Product, Roofline
from .settings import JobSettings
from .shapes import Call

_HALF = ("c10::Half", "c10::BFloat16")


class MatrixKernels:
    """Plans of matrix operators on one device."""

    def __init__(self, hardware: Hardware, roofline: Roofline, settings: JobSettings) -> None:
        self._hardware = hardware
        self._roofline = roofline
        self._settings = settings
        self._tf32 = settings.tf32 and hardware.device.has_tf32
        self._tries = settings.cudnn_benchmark and algorithms.TRIED_EACH_TIME in settings.settings
        self._library_call = "hipExtModuleLaunchKernel" if hardware.is_amd else "cudaLaunchKernel"
        self._launch = "hipLaunchKernel" if hardware.is_amd else "cudaLaunchKernel"

    def precision(self, dtype: str, of_product: bool) -> Precision:
        """The arithmetic of a type. cuDNN uses TF32 by default; products only where a job allows it."""
        if dtype in _HALF:
            return Precision.HALF
        if dtype == "double":
            return Precision.FP64
        return Precision.TF32 if self._tf32 else Precision.FP32

    # Products

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
            (self._kernel(name, self._roofline.moving(moved, 0.6, sizes), 1 + prod(sizes) // 4096),), host_us=7.0
        )

    def _product(
        self, rows: int, columns: int, inner: int, batch: int, dtype: str, layout: str, biased: bool
    ) -> tuple[Kernel, ...]:
        precision = self.precision(dtype, of_product=True)
        width = 4 if dtype == "float" else 2 if dtype in _HALF else 8
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
            return (self._kernel(name, timing.duration_us, timing.blocks, registers=168, shared=49152, library=True),)
        reduction_us = self._roofline.moving(outputs * 4.0 * timing.split, 0.7, ("split", outputs, timing.split))
        main_us = max(timing.duration_us - 1.5, self._roofline.fixed_us)
        return (
            self._kernel(name, main_us, timing.blocks, registers=168, shared=49152, library=True),
            self._kernel(names.split_reduction(dtype), reduction_us, 1 + outputs // 4096, library=True),
        )

    # Convolutions

    def convolution(self, call: Call) -> Plan | None:
        """`_convolution`: the library's operator inside, and the bias added by a kernel of its own."""
        shape = _Convolution.of_forward(call)
        if shape is None:
            return None
        dtype = names.element_of(call.type(0))
        last = _is_channels_last(call.shape(0), call.stride(0)) or _is_channels_last(call.shape(1), call.stride(1))
        kernels = self._convolution(shape, "dgrad" if shape.transposed else "fprop", dtype, last)
        vendor = "miopen" if self._hardware.is_amd else "cudnn"
        operator = f"aten::{vendor}_convolution{'_transpose' if shape.transposed else ''}"
        if shape.is_depthwise and not (last and dtype in _HALF) and not self._hardware.is_amd:
            operator = "aten::_conv_depthwise2d"
        inner = [Plan(kernels, rename=operator, host_us=16.0, waits=self._tries)]
        if call.shape(2):
            inner.append(self._bias(shape, dtype))
        return Plan((), inner=tuple(inner), host_us=5.0)

    def convolution_backward(self, call: Call) -> Plan | None:
        """`convolution_backward`: one product for each gradient that is wanted."""
        shape = _Convolution.of_backward(call)
        if shape is None:
            return None
        dtype = names.element_of(call.type(1))
        last = _is_channels_last(call.shape(1), call.stride(1)) or _is_channels_last(call.shape(2), call.stride(2))
        wanted = [word.strip() == "True" for word in call.value(10).strip("[]").split(",")]
        wanted = wanted if len(wanted) == 3 else [True, True, False]
        kernels: tuple[Kernel, ...] = ()
        if wanted[0]:
            kernels += self._convolution(shape, "fprop" if shape.transposed else "dgrad", dtype, last)
        if wanted[1]:
            kernels += self._convolution(shape, "wgrad", dtype, last)
        if wanted[2]:
            moved = prod(shape.output) * call.element_bytes(0)
            name = names.reduction(f"at::native::sum_functor<{dtype}, float, {dtype}>", dtype, inner=False)
            kernels += (self._kernel(name, self._roofline.moving(moved, 0.6, ("bias", shape.output)), shape.output[1]),)
        return Plan(kernels, host_us=24.0, waits=self._tries)

    def _bias(self, shape: _Convolution, dtype: str) -> Plan:
        moved = 2.0 * prod(shape.output) * (2 if dtype in _HALF else 4)
        name = names.strided(f"at::native::CUDAFunctor_add<{dtype}>")
        duration = self._roofline.moving(moved, 0.6, ("bias", shape.output, dtype))
        return Plan((self._kernel(name, duration, 1 + prod(shape.output) // 512),), rename="aten::add_", host_us=5.0)

    def _convolution(self, shape: _Convolution, kind: str, dtype: str, last: bool) -> tuple[Kernel, ...]:
        width = 2 if dtype in _HALF else 8 if dtype == "double" else 4
        moved = float(width * (prod(shape.data) + prod(shape.weight) + prod(shape.output)))
        if shape.is_depthwise:
            return (self._depthwise(shape, kind, dtype, last, moved),)
        precision = self.precision(dtype, of_product=False)
        rows, columns, inner = shape.product(kind)
        step = 8 if width == 2 else 4
        aligned = shape.channels % step == 0 and shape.filters % step == 0
        quality = 1.0 if aligned or precision in (Precision.FP32, Precision.FP64) else 0.5
        if min(shape.channels, shape.filters) < step:
            quality *= 0.6 if self._hardware.is_amd else 0.22
        if shape.groups > 1:
            quality *= 0.5
        quality *= {"fprop": 0.85, "dgrad": 0.75, "wgrad": 0.62}[kind]
        if self._hardware.is_amd:
            quality *= 0.62
        guess = None
        if not self._settings.cudnn_benchmark:
            guess = algorithms.guess(self._hardware, shape.data, shape.weight, kind, dtype)
            quality *= guess.rate if guess else 1.0
        if shape.is_volume and not last:
            quality *= 0.6
        timing = self._roofline.product(rows, columns, inner, precision, quality, moved, shape.groups)
        right = names.convolution(self._hardware, kind, dtype, precision, timing.tile, aligned, last)
        name = guess.name if guess else right
        main = self._kernel(name, timing.duration_us, timing.blocks, registers=200, shared=65536, library=True)
        before, after = self._miopen_around(shape, kind, width) if self._hardware.is_amd else ((), ())
        around = precision is Precision.HALF and not last
        kernels = self._transposed(main, shape, kind, dtype, width) if around else (main,)
        return (*before, *self._trials(main, shape, kind, dtype), *kernels, *after)

    def _trials(self, main: Kernel, shape: _Convolution, kind: str, dtype: str) -> tuple[Kernel, ...]:
        """What runs before an algorithm is known for a size that is new."""
        if not self._tries:
            return ()
        others = algorithms.tried(self._hardware, shape.data, shape.weight, kind, dtype)
        return tuple(replace(main, name=one.name, duration_us=main.duration_us / one.rate) for one in others)

    def _miopen_around(
        self, shape: _Convolution, kind: str, width: int
    ) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
        """MIOpen clears what its kernels add into; gradients of weights are added up in fp32 and cast."""
        result = {"fprop": shape.output, "dgrad": shape.data, "wgrad": shape.weight}[kind]
        if kind == "fprop":
            return (), ()
        wide = 4 if kind == "wgrad" else width
        cleared = self._layout_kernel("SubTensorOpWithScalar1d", result, wide)
        cast = (
            (self._layout_kernel("SubTensorOpWithCastTensor1d", result, 4),) if kind == "wgrad" and width == 2 else ()
        )
        return (cleared,), cast

    def _transposed(self, main: Kernel, shape: _Convolution, kind: str, dtype: str, width: int) -> tuple[Kernel, ...]:
        """Half-precision kernels want channels last: both inputs are transposed before, the result after."""
        sizes = {"fprop": (shape.data, shape.weight, shape.output), "dgrad": (shape.output, shape.weight, shape.data)}
        first, second, result = sizes.get(kind, (shape.data, shape.output, shape.weight))
        into, back = names.to_channels_last(self._hardware, dtype), names.to_channels_first(self._hardware, dtype)
        return (
            self._layout_kernel(into, first, width),
            self._layout_kernel(into, second, width),
            main,
            self._layout_kernel(back, result, width),
        )

    def _layout_kernel(self, name: str, sizes: Dims, width: int) -> Kernel:
        share = 0.3 if self._hardware.is_amd else 0.55
        duration = self._roofline.moving(2.0 * prod(sizes) * width, share, ("layout", name, sizes))
        return self._kernel(name, duration, 1 + prod(sizes) // 1024, library=True)

    def _depthwise(self, shape: _Convolution, kind: str, dtype: str, last: bool, moved: float) -> Kernel:
        share = {"fprop": 0.3, "dgrad": 0.26, "wgrad": 0.1}[kind] * (1.0 if last or dtype not in _HALF else 0.6)
        share /= max(1.0, prod(shape.weight[2:]) / 9)
        duration = self._roofline.moving(moved, share, ("depthwise", shape, kind, dtype, last))
        name = names.depthwise(self._hardware, kind, dtype, last and dtype in _HALF)
        return self._kernel(name, duration, 1 + prod(shape.output) // 256, block=256)

    # Attention

    def attention(self, call: Call, first: int, backward: bool) -> Plan | None:
        """The fused attention that PyTorch would pick on the device."""
        query, key, value = (call.shape(first + k) for k in range(3))
        if min(len(query), len(key), len(value)) != 4:
            return None
        dtype = names.element_of(call.type(first))
        masked = bool(call.shape(8 if backward else 5))
        capable = self._hardware.is_amd or self._hardware.device.capability >= (8, 0)
        flash = dtype in _HALF and capable and not masked and query[-1] <= 256
        duration_us = self._attention_us(query, key, dtype, flash, backward)
        blocks = prod(query[:2]) * ceil(query[2] / 128)
        word = "flash" if flash else "efficient"
        direction = "backward" if backward else "forward"
        suffix = "_backward" if backward else ""
        if flash or self._hardware.is_amd:
            kernels = self._flash(dtype, query, duration_us, blocks, backward)
        else:
            name = names.efficient_attention(self._hardware, dtype, query[-1], backward)
            kernels = (self._kernel(name, duration_us, blocks, registers=168, shared=65536),)
        inner = Plan(kernels, rename=f"aten::_{word}_attention_{direction}", host_us=12.0)
        return Plan((), rename=f"aten::_scaled_dot_product_{word}_attention{suffix}", inner=(inner,), host_us=9.0)

    def _flash(self, dtype: str, query: Dims, duration_us: float, blocks: int, backward: bool) -> tuple[Kernel, ...]:
        head = min(size for size in (32, 64, 96, 128, 192, 256) if size >= query[-1])
        if not backward:
            name = names.flash_forward(self._hardware, dtype, head)
            return (self._kernel(name, duration_us, blocks, registers=255, shared=49152, library=True),)
        all_names = names.flash_backward(self._hardware, dtype, head)
        small_us = self._roofline.moving(prod(query) * 6.0, 0.6, ("flash", query))
        heavy = [False, True, False] if not self._hardware.is_amd else [False, True, True]
        return tuple(
            self._kernel(name, duration_us / sum(heavy) if is_heavy else small_us, blocks, registers=255, library=True)
            for name, is_heavy in zip(all_names, heavy, strict=True)
        )

    def _attention_us(self, query: Dims, key: Dims, dtype: str, flash: bool, backward: bool) -> float:
        precision = self.precision(dtype, of_product=True)
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

    def _kernel(
        self,
        name: str,
        duration_us: float,
        blocks: int,
        *,
        registers: int = 32,
        shared: int = 0,
        block: int = 128,
        library: bool = False,
    ) -> Kernel:
        call = self._library_call if library else self._launch
        if name.startswith("nvjet"):
            call = "cudaLaunchKernelExC"
        return Kernel(name, duration_us, (max(1, blocks), 1, 1), (block, 1, 1), registers, shared, Work.KERNEL, call)


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A convolution's sizes: `data` is the input, `output` the result, whatever is computed of them."""

    data: Dims
    weight: Dims
    output: Dims
    groups: int
    transposed: bool

    @staticmethod
    def of_forward(call: Call) -> _Convolution | None:
        data, weight = call.shape(0), call.shape(1)
        if len(data) < 3 or len(weight) != len(data):
            return None
        stride, padding, dilation, extra = (_numbers(call.value(at)) for at in (3, 4, 5, 7))
        transposed = call.value(6) == "True"
        output = convolution_output(data, weight, transposed, stride, padding, dilation, extra)
        if output is None:
            return None
        groups = int(call.value(8) or 1)
        output = (output[0], output[1] * groups if transposed else output[1], *output[2:])
        return _Convolution(data, weight, output, groups, transposed)

    @staticmethod
    def of_backward(call: Call) -> _Convolution | None:
        output, data, weight = call.shape(0), call.shape(1), call.shape(2)
        if not len(output) == len(data) == len(weight) >= 3:
            return None
        return _Convolution(data, weight, output, int(call.value(9) or 1), call.value(7) == "True")

    @property
    def channels(self) -> int:
        return self.data[1] // self.groups

    @property
    def filters(self) -> int:
        return self.output[1] // self.groups

    @property
    def is_depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.data[1]

    @property
    def is_volume(self) -> bool:
        return len(self.data) == 5

    def product(self, kind: str) -> tuple[int, int, int]:
        """Rows, columns and inner length of one group's product."""
        window = prod(self.weight[2:])
        outer, small = (self.data, self.output) if self.transposed else (self.output, self.data)
        pixels, finer = outer[0] * prod(outer[2:]), small[0] * prod(small[2:])
        filters, channels = (self.channels, self.filters) if self.transposed else (self.filters, self.channels)
        if kind == "fprop":
            return pixels, filters, channels * window
        if kind == "dgrad":
            # Strided: each input pixel meets only some of the window.
            shrunk = max(1, round(window * pixels / max(finer, 1)))
            return finer, channels, filters * min(window, shrunk)
        return filters, channels * window, pixels


def _layout(left: Dims, right: Dims) -> str:
    """cuBLAS's letters for a product of two row-major or transposed factors."""
    left_plain = not left or left[-1] == 1
    right_plain = not right or right[-1] == 1
    return "nt" if not left_plain else "nn" if right_plain else "tn"


def _is_channels_last(sizes: Dims, strides: Dims) -> bool:
    """Whether the channels are the innermost axis in memory."""
    return len(sizes) >= 4 and len(strides) == len(sizes) and strides[1] == 1 and prod(sizes[2:]) > 1 and sizes[1] > 1


def _numbers(text: str) -> Dims:
    return tuple(int(word) for word in text.strip("[]").split(",") if word.strip()) if text.startswith("[") else ()
