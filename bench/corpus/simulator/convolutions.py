"""Convolutions: which kernels they run, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from torchtraceap.analyzer.timeline.convolution_costs import convolution_output
from torchtraceap.analyzer.timeline.kernel_names import Precision
from torchtraceap.analyzer.trace.model import Dims

from . import algorithms, names
from .hardware import Hardware
from .kernels import Kernel, Plan
from .library import HALF, Library
from .roofline import Roofline
from .settings import JobSettings
from .shapes import Call, is_channels_last, numbers


class ConvolutionKernels:
    """Plans of convolutions on one device."""

    def __init__(self, hardware: Hardware, roofline: Roofline, library: Library, settings: JobSettings) -> None:
        self._hardware = hardware
        self._roofline = roofline
        self._library = library
        self._tunes = settings.cudnn_benchmark
        self._tries = settings.cudnn_benchmark and algorithms.TRIED_EACH_TIME in settings.settings

    def forward(self, call: Call) -> Plan | None:
        """`_convolution`: the library's operator inside, and the bias added by a kernel of its own."""
        shape = _Convolution.of_forward(call)
        if shape is None:
            return None
        dtype = names.element_of(call.type(0))
        last = _is_channels_last(call.shape(0), call.stride(0)) or _is_channels_last(call.shape(1), call.stride(1))
        kernels = self._convolution(shape, "dgrad" if shape.transposed else "fprop", dtype, last)
        vendor = "miopen" if self._hardware.is_amd else "cudnn"
        operator = f"aten::{vendor}_convolution{'_transpose' if shape.transposed else ''}"
        if shape.is_depthwise and not (last and dtype in HALF) and not self._hardware.is_amd:
            operator = "aten::_conv_depthwise2d"
        inner = [Plan(kernels, rename=operator, host_us=16.0, waits=self._tries)]
        if call.shape(2):
            inner.append(self._bias(shape, dtype))
        return Plan((), inner=tuple(inner), host_us=5.0)

    def backward(self, call: Call) -> Plan | None:
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
            kernels += (
                self._library.kernel(name, self._roofline.moving(moved, 0.6, ("bias", shape.output)), shape.output[1]),
            )
        return Plan(kernels, host_us=24.0, waits=self._tries)

    def _bias(self, shape: _Convolution, dtype: str) -> Plan:
        moved = 2.0 * prod(shape.output) * (2 if dtype in HALF else 4)
        name = names.strided(f"at::native::CUDAFunctor_add<{dtype}>")
        duration = self._roofline.moving(moved, 0.6, ("bias", shape.output, dtype))
        return Plan(
            (self._library.kernel(name, duration, 1 + prod(shape.output) // 512),), rename="aten::add_", host_us=5.0
        )

    def _convolution(self, shape: _Convolution, kind: str, dtype: str, last: bool) -> tuple[Kernel, ...]:
        width = 2 if dtype in HALF else 8 if dtype == "double" else 4
        moved = float(width * (prod(shape.data) + prod(shape.weight) + prod(shape.output)))
        if shape.is_depthwise:
            return (self._depthwise(shape, kind, dtype, last, moved),)
        precision = self._library.precision(dtype)
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
        if not self._tunes:
            guess = algorithms.guess(self._hardware, shape.data, shape.weight, kind, dtype)
            quality *= guess.rate if guess else 1.0
        if shape.is_volume and not last:
            quality *= 0.6
        timing = self._roofline.product(rows, columns, inner, precision, quality, moved, shape.groups)
        right = names.convolution(self._hardware, kind, dtype, precision, timing.tile, aligned, last)
        name = guess.name if guess else right
        main = self._library.kernel(name, timing.duration_us, timing.blocks, registers=200, shared=65536, library=True)
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
        return self._library.kernel(name, duration, 1 + prod(sizes) // 1024, library=True)

    def _depthwise(self, shape: _Convolution, kind: str, dtype: str, last: bool, moved: float) -> Kernel:
        share = {"fprop": 0.3, "dgrad": 0.26, "wgrad": 0.1}[kind] * (1.0 if last or dtype not in HALF else 0.6)
        share /= max(1.0, prod(shape.weight[2:]) / 9)
        duration = self._roofline.moving(moved, share, ("depthwise", shape, kind, dtype, last))
        name = names.depthwise(self._hardware, kind, dtype, last and dtype in HALF)
        return self._library.kernel(name, duration, 1 + prod(shape.output) // 256, block=256)


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
        stride, padding, dilation, extra = (numbers(call.value(at)) for at in (3, 4, 5, 7))
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


def _is_channels_last(sizes: Dims, strides: Dims) -> bool:
    """The same for a convolution's tensors: with one place only, the layouts are one."""
    return is_channels_last(sizes, strides) and prod(sizes[2:]) > 1
