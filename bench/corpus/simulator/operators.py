"""What each operator runs on a device. `Planner.plan` is asked for every operator call; equal calls share a plan."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torchtraceap.analyzer.trace.model import Dims

from . import names
from .convolutions import ConvolutionKernels
from .hardware import Hardware
from .kernels import Kernel, Plan, Work
from .library import Library
from .many_tensors import ManyTensors
from .matrix import MatrixKernels
from .normalization import NormalizingKernels
from .pointwise import NAMED, POINTWISE, REDUCTIONS
from .roofline import Roofline, moving_kernel
from .selections import NMS, SelectingKernels
from .settings import JobSettings
from .shapes import Call, is_channels_last, numbers

ALLOCATING = frozenset(("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "resize", "set"))
_WITHOUT_WORK = ALLOCATING | frozenset(
    (
        *(
            "view",
            "as_strided",
            "transpose",
            "t",
            "permute",
            "expand",
            "slice",
            "select",
            "narrow",
            "unsqueeze",
            "squeeze",
        ),
        *(
            "detach",
            "alias",
            "unbind",
            "split",
            "split_with_sizes",
            "chunk",
            "unfold",
            "flatten",
            "unflatten",
            "reshape",
        ),
        *(
            "_reshape_alias",
            "_unsafe_view",
            "view_as",
            "expand_as",
            "movedim",
            "diagonal",
            "resolve_conj",
            "resolve_neg",
        ),
        *("lift_fresh", "contiguous", "to", "_to_copy", "clone", "dropout", "type_as", "item", "_local_scalar_dense"),
        *("is_nonzero", "result_type", "record_stream", "pin_memory", "_pin_memory", "is_pinned", "size", "stride"),
        *("numpy_T", "mT", "real", "imag", "view_as_real", "view_as_complex", "requires_grad", "set_", "swapaxes"),
        *(
            "as_strided_",
            "zeros",
            "ones",
            "full",
            "zeros_like",
            "ones_like",
            "matmul",
            "linear",
            "mkldnn_linear",
            "relu",
        ),
        *(
            "broadcast_tensors",
            "meshgrid",
            "equal",
            "isclose",
            "allclose",
            "unsafe_split",
            "unsafe_chunk",
            "tensor_split",
        ),
        *("_has_compatible_shallow_copy_type", "_version", "_backward", "output_nr", "is_complex", "is_floating_point"),
        *("scalar_tensor", "_fused_sdp_choice", "scaled_dot_product_attention", "broadcast_to", "swapdims", "lift"),
        *("atleast_1d", "atleast_2d", "hsplit", "vsplit", "dsplit", "data", "unsqueeze", "squeeze"),
    )
)
"""Views, allocations, and operators that leave the work to those they call."""


class Planner:
    """Plans of all operators on one device."""

    def __init__(self, hardware: Hardware, roofline: Roofline, settings: JobSettings, parameter_elements: int) -> None:
        self._hardware = hardware
        self._roofline = roofline
        self._halves = settings.autocast
        library = Library(hardware, settings)
        self._matrix = MatrixKernels(hardware, roofline, library)
        self._convolutions = ConvolutionKernels(hardware, roofline, library, settings)
        self._normalizing = NormalizingKernels(hardware, roofline)
        self._selecting = SelectingKernels(roofline)
        self.many = ManyTensors(roofline, parameter_elements)
        """Operators over lists of tensors."""
        self._copy = "hipMemcpyAsync" if hardware.is_amd else "cudaMemcpyAsync"
        self._known: dict[tuple[str, Call, bool], Plan | None] = {}

    def plan(self, name: str, call: Call, is_leaf: bool) -> Plan | None:
        """What an operator runs itself; None where it only calls others, views or allocates.

        `is_leaf`: whether it calls no other operator that computes. Unknown operators compute if they are leaves.
        """
        key = (name, call, is_leaf)
        if key not in self._known:
            is_known = name.startswith("aten::") or name == NMS
            self._known[key] = self._plan(name, call, is_leaf) if is_known else None
        return self._known[key]

    def _plan(self, name: str, call: Call, is_leaf: bool) -> Plan | None:
        op = name.removeprefix("aten::").removesuffix("_")
        if op in _WITHOUT_WORK:
            return None
        if (plan := self._selecting.plan(op, call)) is not None:
            return plan
        if (plan := self._matrix_plan(op, call)) is not None:
            return plan
        if (plan := self._normalizing.plan(op, call)) is not None:
            return plan
        if op == "copy":
            return self._copying(call)
        if op == "cat":
            return self._concatenation(call)
        if op in REDUCTIONS and any(call.dims):
            return self._reduction(op, call)
        if op in NAMED:
            return self._named(op, call)
        if op in POINTWISE or (is_leaf and call.dims):
            return self._pointwise(op, call)
        return None

    def _matrix_plan(self, op: str, call: Call) -> Plan | None:
        matrix = self._matrix
        if op in ("mm", "bmm", "_int_mm"):
            return matrix.product(call, 0, biased=False)
        if op in ("addmm", "baddbmm", "addbmm", "_addmm_activation"):
            return matrix.product(call, 1, biased=op == "addmm")
        if op in ("mv", "dot", "vdot"):
            return matrix.vector_product(call)
        if op == "_convolution":
            return self._convolutions.forward(call)
        if op == "convolution_backward":
            return self._convolutions.backward(call)
        if op.startswith("_scaled_dot_product_") and not op.startswith("_scaled_dot_product_attention_math"):
            backward = op.endswith("_backward")
            return matrix.attention(call, 1 if backward else 0, backward)
        return None

    def _copying(self, call: Call) -> Plan | None:
        sizes = call.shape(0)
        read, written = call.element_bytes(1), call.element_bytes(0)
        elements = prod(sizes)
        if not elements:
            return None
        target, source = names.element_of(call.type(0)), names.element_of(call.type(1))
        plain = call.shape(1) == sizes and _same_layout(sizes, call.stride(0), call.stride(1))
        if plain and source == target:
            moved = elements * written
            duration = self._roofline.moving(2.0 * moved, 0.7, ("copy", elements))
            kernel = Kernel("Memcpy DtoD (Device -> Device)", duration, work=Work.MEMCPY, call=self._copy, bytes=moved)
            return Plan((kernel,), host_us=4.0)
        word = "bfloat16_copy_kernel_cuda" if target == "c10::BFloat16" else "direct_copy_kernel_cuda"
        functor = f"at::native::{word}(at::TensorIteratorBase&)::{{lambda({source})#1}}"
        moved = float(elements * written + prod(call.shape(1) or (1,)) * read)
        if plain:
            name, share = names.unrolled(functor, 2), 0.72
        else:
            name, share = names.strided(functor), 0.42
        return Plan(
            (moving_kernel(self._roofline, name, moved, share, (sizes, call.stride(0), call.stride(1))),), host_us=5.0
        )

    def _concatenation(self, call: Call) -> Plan | None:
        tensors = [sizes for many in call.lists for sizes in many]
        if not tensors:
            return None
        width = 2 if self._halves else 4
        moved = 2.0 * width * sum(map(prod, tensors))
        name = (
            f"void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::"
            f"native::(anonymous namespace)::OpaqueType<{width}u>,"
            f" unsigned int, {max(map(len, tensors))}, 64, 64>()"
        )
        return Plan((moving_kernel(self._roofline, name, moved, 0.3, tuple(tensors), extra_us=1.5),), host_us=8.0)

    def _reduction(self, op: str, call: Call) -> Plan:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        moved = float(prod(sizes) * call.element_bytes(0))
        name = names.reduction(REDUCTIONS[op].replace("{T}", dtype), dtype, inner=len(sizes) < 3)
        return Plan(
            (moving_kernel(self._roofline, name, moved, 0.55, (op, sizes, call.stride(0)), extra_us=1.6),), host_us=9.0
        )

    def _named(self, op: str, call: Call) -> Plan | None:
        name, read, written, share = NAMED[op]
        sizes = max((call.shape(k) for k in range(len(call.dims))), key=prod, default=())
        dtype = names.element_of(call.type(0))
        layout = "nhwc" if is_channels_last(call.shape(0), call.stride(0)) else "nchw"
        text = name.replace("{T}", dtype).replace("{L}", layout).replace("{S}", str(call.element_bytes(0)))
        base = float(prod(sizes) * call.element_bytes(0))
        ratio = _growth(op, call)
        moved = (read + written * ratio) * base
        if self._hardware.is_amd and "pool" in op:
            share *= 0.35
        return Plan(
            (moving_kernel(self._roofline, f"void at::native::{text}()", moved, share, (op, sizes)),), host_us=7.0
        )

    def _pointwise(self, op: str, call: Call) -> Plan | None:
        tensors = [(call.shape(k), call.stride(k), k) for k in range(len(call.dims)) if call.shape(k)]
        rule = POINTWISE.get(op)
        if not tensors:
            return self._scalar(op, call)
        sizes = _broadcast([sizes for sizes, _, _ in tensors])
        elements = prod(sizes)
        if not elements:
            return None
        dtype = names.element_of(call.type(tensors[0][2]))
        reads = (
            0.0
            if rule is not None and rule.inputs == 0
            else sum(prod(s) * call.element_bytes(k) for s, _, k in tensors)
        )
        moved = reads + elements * call.element_bytes(tensors[0][2])
        functor = (
            rule.functor if rule else f"at::native::{op}_kernel_cuda(at::TensorIteratorBase&)::{{lambda({{T}})#1}}"
        )
        functor = functor.replace("{T}", dtype)
        full = [(s, strides) for s, strides, _ in tensors if prod(s) > 1]
        dense = all(s == sizes and _same_layout(sizes, full[0][1], strides) for s, strides in full)
        mixed = len({call.type(k) for _, _, k in tensors}) > 1
        if not dense:
            name, share = names.strided(functor), 0.5
        elif mixed:
            name, share = names.unrolled(functor, len(tensors) + 1), 0.7
        else:
            name, share = names.vectorized(functor, len(tensors) + 1, dtype), 0.82
        return Plan((moving_kernel(self._roofline, name, moved, share, (op, sizes, dense, mixed)),), host_us=5.0)

    def _scalar(self, op: str, call: Call) -> Plan | None:
        """Work on tensors without dimensions, such as counters."""
        if not call.types or call.type(0) in ("ScalarList", "Scalar", "TensorList", ""):
            return None
        dtype = names.element_of(call.type(0))
        rule = POINTWISE.get(op)
        functor = (rule.functor if rule else f"at::native::{op}_kernel_cuda<{{T}}>").replace("{T}", dtype)
        return Plan((moving_kernel(self._roofline, names.vectorized(functor, 2, dtype), 16.0, 0.5, op),), host_us=5.0)


def _growth(op: str, call: Call) -> float:
    """For resizing operators: by how much the result is larger than the input."""
    if not op.startswith("upsample") or op.endswith("backward"):
        return 1.0
    sizes, wanted = call.shape(0), call.value(1)
    if not wanted.startswith("[") or len(sizes) < 3:
        return 1.0
    target = prod(numbers(wanted))
    return target / max(1, prod(sizes[2:])) / 4.0


def _broadcast(shapes: Sequence[Dims]) -> Dims:
    """The shape that tensors of these shapes are broadcast to."""
    length = max(map(len, shapes))
    padded = [(1,) * (length - len(sizes)) + sizes for sizes in shapes]
    return tuple(0 if 0 in axis else max(axis) for axis in zip(*padded, strict=True))


def _same_layout(sizes: Dims, first: Dims, second: Dims) -> bool:
    """Whether two tensors of one shape lie in memory in the same dense order; axes of length 1 don't count."""
    if len(first) != len(sizes) or len(second) != len(sizes):
        return True
    strides = [(a, b, size) for a, b, size in zip(first, second, sizes, strict=True) if size > 1]
    if any(a != b for a, b, _ in strides):
        return False
    expected = 1
    for step, _, size in sorted(strides):
        if step != expected:
            return False
        expected *= size
    return True
