"""What each operator runs on a device. `Planner.plan` is asked for every operator call; equal calls share a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod

from torchtraceap.analyzer.trace.model import Dims

from . import names
from .hardware import Hardware
from .kernels import Kernel, Plan, Work
from .matrix import MatrixKernels
from .pointwise import NAMED, POINTWISE, REDUCTIONS, SELECTIONS, WAITING
from .roofline import Roofline
from .settings import JobSettings
from .shapes import Call

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
        *("atleast_1d", "atleast_2d", "hsplit", "vsplit", "dsplit", "data", "unsqueeze", "squeeze"),
    )
)
"""Views, allocations, and operators that leave the work to those they call."""
_INSIDE_KEPT = frozenset(
    ("as_strided", "view", "transpose", "expand", "empty_like", "empty", "empty_strided", "permute")
)
_PER_KERNEL = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
"""Tensors that one multi-tensor kernel takes, by lists (MultiTensorApply.cuh)."""
_CHUNK_ELEMENTS = 65536
_CHUNKS_PER_KERNEL = 320


class Planner:
    """Plans of all operators on one device."""

    def __init__(self, hardware: Hardware, roofline: Roofline, settings: JobSettings, parameter_elements: int) -> None:
        self._hardware = hardware
        self._roofline = roofline
        self._matrix = MatrixKernels(hardware, roofline, settings)
        self._parameter_elements = parameter_elements
        self._launch = "hipLaunchKernel" if hardware.is_amd else "cudaLaunchKernel"
        self._copy = "hipMemcpyAsync" if hardware.is_amd else "cudaMemcpyAsync"
        self._known: dict[tuple[str, Call, bool], Plan | None] = {}

    def plan(self, name: str, call: Call, is_leaf: bool) -> Plan | None:
        """What an operator runs itself; None where it only calls others, views or allocates.

        `is_leaf`: whether it calls no other operator that computes. Unknown operators compute if they are leaves.
        """
        key = (name, call, is_leaf)
        if key not in self._known:
            self._known[key] = self._plan(name, call, is_leaf) if name.startswith("aten::") else None
        return self._known[key]

    def _plan(self, name: str, call: Call, is_leaf: bool) -> Plan | None:
        op = name.removeprefix("aten::").removesuffix("_")
        if op in _WITHOUT_WORK:
            return None
        if (plan := self._matrix_plan(op, call)) is not None:
            return plan
        if (plan := self._library_plan(op, call)) is not None:
            return plan
        if op == "copy":
            return self._copying(call)
        if op == "cat":
            return self._concatenation(call)
        if op in REDUCTIONS and any(call.dims):
            return self._reduction(op, call)
        if op in SELECTIONS or op in WAITING:
            return self._selection(op, call)
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
            return matrix.convolution(call)
        if op == "convolution_backward":
            return matrix.convolution_backward(call)
        if op.startswith("_scaled_dot_product_") and not op.startswith("_scaled_dot_product_attention_math"):
            backward = op.endswith("_backward")
            return matrix.attention(call, 1 if backward else 0, backward)
        return None

    # Normalisation, softmax

    def _library_plan(self, op: str, call: Call) -> Plan | None:
        if op in ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"):
            return self._batch_norm(call, training="no_training" not in op and call.value(5) == "True")
        if op == "native_batch_norm_backward":
            return self._batch_norm_backward(call)
        if op == "native_layer_norm":
            return self._layer_norm(call)
        if op == "native_layer_norm_backward":
            return self._layer_norm_backward(call)
        if op in ("native_group_norm", "native_group_norm_backward"):
            return self._group_norm(call, backward=op.endswith("backward"))
        if op in ("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"):
            return self._softmax(op, call)
        return None

    def _batch_norm(self, call: Call, training: bool) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if len(sizes) < 2:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        last = _is_channels_last(sizes, call.stride(0))
        if dtype != "c10::BFloat16" and call.type(1) != "c10::BFloat16" and len(sizes) == 4:
            return self._library_batch_norm(sizes, dtype, moved, training, last)
        types = f"{dtype}, {dtype}, float"
        transform = "batch_norm_transform_input_channels_last_kernel" if last else "batch_norm_transform_input_kernel"
        width = ", 4>()" if last else ", true, int>()"
        apply = self._moving(f"void at::native::{transform}<{types}{width}", 2 * moved, 0.62, sizes)
        if not training:
            return Plan((apply,), host_us=8.0)
        collect = (
            "batch_norm_collect_statistics_channels_last_kernel" if last else "batch_norm_collect_statistics_kernel"
        )
        name = f"void at::native::{collect}<at::native::Var, {types}, int>()"
        first = self._moving(name, moved, 0.33, sizes) if last else self._by_channel(name, moved, sizes, 850.0)
        update = self._moving(
            "void at::native::(anonymous namespace)::unrolled_elementwise_kernel_for_multi_outputs<3, at::native::(anonymous "
            "namespace)::batch_norm_update_stats_and_invert(at::Tensor const&)::{lambda()#1}>()",
            40.0 * sizes[1],
            0.5,
            sizes[1],
        )
        return Plan((first, update, apply), host_us=11.0)

    def _library_batch_norm(self, sizes: Dims, dtype: str, moved: float, training: bool, last: bool) -> Plan:
        if self._hardware.is_amd:
            kernels = (self._moving("MIOpenBatchNormFwdTrainSpatial", 3 * moved, 0.4, sizes),)
            if not training:
                kernels = (self._moving("MIOpenBatchNormFwdInferSpatialEst", 2 * moved, 0.6, sizes),)
            return Plan(kernels, rename="aten::miopen_batch_norm", host_us=16.0)
        if not training:
            name = f"void cudnn::bn_fw_inf_1C11_kernel_NCHW<{dtype}, float, true, 1>()"
            return Plan((self._moving(name, 2 * moved, 0.6, sizes),), rename="aten::cudnn_batch_norm", host_us=14.0)
        kernel = "batchnorm_fwtr_nhwc_semiPersist" if last and dtype == "c10::Half" else "bn_fw_tr_1C11_kernel_NCHW"
        name = f"void cudnn::{kernel}<{dtype}, float, 512, true, 1>(cudnnTensorStruct, {dtype} const*, float*)"
        return Plan((self._moving(name, 3 * moved, 0.6, sizes),), rename="aten::cudnn_batch_norm", host_us=16.0)

    def _batch_norm_backward(self, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if len(sizes) < 2:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        last = _is_channels_last(sizes, call.stride(0))
        if dtype != "c10::BFloat16" and len(sizes) == 4:
            vendor = "miopen" if self._hardware.is_amd else "cudnn"
            name = f"void cudnn::bn_bw_1C11_kernel_new<{dtype}, float, float2, 512, true, 1>()"
            name = "MIOpenBatchNormBwdSpatial" if self._hardware.is_amd else name
            kernels = (self._moving(name, 5 * moved, 0.6, sizes),)
            return Plan(kernels, rename=f"aten::{vendor}_batch_norm_backward", host_us=16.0)
        types = f"{dtype}, {dtype}, float"
        if not last:
            name = f"void at::native::batch_norm_backward_kernel<{types}, int>()"
            return Plan((self._by_channel(name, 5 * moved, sizes, 330.0),), host_us=12.0)
        reduce = f"void at::native::batch_norm_backward_reduce_channels_last_kernel<4, {types}>()"
        apply = f"void at::native::batch_norm_backward_elemt_channels_last_kernel<4, {types}>()"
        kernels = (self._moving(reduce, 2 * moved, 0.45, sizes), self._moving(apply, 3 * moved, 0.6, sizes))
        return Plan(kernels, host_us=14.0)

    def _by_channel(self, name: str, moved: float, sizes: Dims, per_us: float) -> Kernel:
        """A kernel with one block for each channel, which gets through `per_us` elements in a microsecond."""
        elements = prod(sizes) // sizes[1]
        waves = ceil(sizes[1] / (2 * self._hardware.units))
        pace = 1.0 if self._hardware.is_amd else 1.5
        in_blocks = 3.0 + waves * elements / (per_us * pace)
        together = self._moving(name, moved, 0.5, sizes)
        return replace(
            together, duration_us=max(together.duration_us, in_blocks), grid=(sizes[1], 1, 1), block=(512, 1, 1)
        )

    def _layer_norm(self, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        name = f"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<{dtype}, float>()"
        moved = 2.0 * prod(sizes) * call.element_bytes(0)
        return Plan((self._moving(name, moved, 0.5, sizes, extra_us=1.2),), host_us=12.0)

    def _layer_norm_backward(self, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        data = f"void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<{dtype}, float>()"
        weights = (
            f"void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<{dtype}, float, 32u, 1u, 32u, "
            "true, false, false>()"
        )
        kernels = (
            self._moving(data, 3 * moved, 0.5, sizes),
            self._moving(weights, 2 * moved, 0.3, sizes, extra_us=3.0),
        )
        return Plan(kernels, host_us=16.0)

    def _group_norm(self, call: Call, backward: bool) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        space = "void at::native::(anonymous namespace)::"
        if backward:
            kernels = (
                self._moving(f"{space}ComputeInternalGradientsCUDAKernel<{dtype}>()", 2 * moved, 0.45, sizes),
                self._moving(f"{space}ComputeBackwardFusedParamsCUDAKernel<{dtype}>()", 4096.0, 0.3, sizes[1:2]),
                self._moving(names.strided(f"at::native::group_norm_backward<{dtype}>"), 3 * moved, 0.6, sizes),
                self._moving(f"{space}GammaBetaBackwardCUDAKernel1<{dtype}>()", 4096.0, 0.3, sizes[1:2]),
            )
            return Plan(kernels, host_us=22.0)
        kernels = (
            self._moving(f"{space}RowwiseMomentsCUDAKernel<{dtype}>()", moved, 0.5, sizes),
            self._moving(f"{space}ComputeFusedParamsCUDAKernel<{dtype}>()", 4096.0, 0.3, sizes[1:2]),
            self._moving(names.strided(f"at::native::group_norm_forward<{dtype}>"), 2 * moved, 0.65, sizes),
        )
        return Plan(kernels, host_us=18.0)

    def _softmax(self, op: str, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        backward = op.endswith("backward_data")
        length, is_log = sizes[-1], str("log" in op).lower()
        direction = "backward" if backward else "forward"
        if length <= 1024:
            bits = max(1, (length - 1).bit_length())
            name = f"void (anonymous namespace)::softmax_warp_{direction}<{dtype}, {dtype}, float, {bits}, {is_log}, false>()"
        else:
            word = "SoftMaxBackward" if backward else "SoftMaxForward"
            name = f"void at::native::(anonymous namespace)::cunn_{word}<8, {dtype}, float, {dtype}>()"
        moved = (3.0 if backward else 2.0) * prod(sizes) * call.element_bytes(0)
        return Plan((self._moving(name, moved, 0.6, sizes),), host_us=6.0)

    # Copies, elementwise work, reductions

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
        return Plan((self._moving(name, moved, share, (sizes, call.stride(0), call.stride(1))),), host_us=5.0)

    def _concatenation(self, call: Call) -> Plan | None:
        tensors = [sizes for many in call.lists for sizes in many]
        if not tensors:
            return None
        width = 4
        moved = 2.0 * width * sum(map(prod, tensors))
        name = (
            f"void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<{width}u>,"
            f" unsigned int, {max(map(len, tensors))}, 64, 64>()"
        )
        return Plan((self._moving(name, moved, 0.6, tuple(tensors), extra_us=1.5),), host_us=8.0)

    def _reduction(self, op: str, call: Call) -> Plan:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        moved = float(prod(sizes) * call.element_bytes(0))
        name = names.reduction(REDUCTIONS[op].replace("{T}", dtype), dtype, inner=len(sizes) < 3)
        return Plan((self._moving(name, moved, 0.55, (op, sizes, call.stride(0)), extra_us=1.6),), host_us=9.0)

    def _selection(self, op: str, call: Call) -> Plan:
        sizes = call.shape(0)
        all_names = SELECTIONS.get(op, SELECTIONS["nonzero"])
        moved = float(prod(sizes) * call.element_bytes(0))
        kernels = tuple(self._moving(name, 2 * moved, 0.25, (name, sizes), extra_us=1.0) for name in all_names)
        return Plan(kernels, host_us=18.0, waits=op in WAITING)

    def _named(self, op: str, call: Call) -> Plan | None:
        name, read, written, share = NAMED[op]
        sizes = max((call.shape(k) for k in range(len(call.dims))), key=prod, default=())
        dtype = names.element_of(call.type(0))
        layout = "nhwc" if _is_channels_last(call.shape(0), call.stride(0)) else "nchw"
        text = name.replace("{T}", dtype).replace("{L}", layout).replace("{S}", str(call.element_bytes(0)))
        base = float(prod(sizes) * call.element_bytes(0))
        ratio = _growth(op, call)
        moved = (read + written * ratio) * base
        if self._hardware.is_amd and "pool" in op:
            share *= 0.35
        return Plan((self._moving(f"void at::native::{text}()", moved, share, (op, sizes)),), host_us=7.0)

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
        return Plan((self._moving(name, moved, share, (op, sizes, dense, mixed)),), host_us=5.0)

    def _scalar(self, op: str, call: Call) -> Plan | None:
        """Work on tensors without dimensions, such as counters."""
        if not call.types or call.type(0) in ("ScalarList", "Scalar", "TensorList", ""):
            return None
        dtype = names.element_of(call.type(0))
        rule = POINTWISE.get(op)
        functor = (rule.functor if rule else f"at::native::{op}_kernel_cuda<{{T}}>").replace("{T}", dtype)
        return Plan((self._moving(names.vectorized(functor, 2, dtype), 16.0, 0.5, op),), host_us=5.0)

    # Many tensors at once

    def multi_tensor(self, op: str, lists: int, sizes: Sequence[int], element_bytes: int, passes: int) -> Plan:
        """A `_foreach_*` or fused operator over tensors of these sizes (elements): one kernel for each chunk of them."""
        functor = _FOREACH.get(op.removeprefix("aten::_foreach_").removesuffix("_"), "UnaryOpFunctor")
        depth = min(max(lists, 1), 5)
        name = (
            f"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
            f"TensorListMetadata<{depth}>, at::native::(anonymous namespace)::{functor}<float, {depth}, {depth}, 0> >()"
        )
        kernels = []
        for tensors, elements in _portions(sizes, _PER_KERNEL[depth]):
            duration = self._roofline.moving(float(elements) * element_bytes * passes, 0.66, (op, tensors, elements))
            blocks = min(_CHUNKS_PER_KERNEL, max(1, ceil(elements / _CHUNK_ELEMENTS) + tensors // 2))
            kernels.append(Kernel(name, duration + 0.8, (blocks, 1, 1), (512, 1, 1), call=self._launch))
        return Plan(tuple(kernels), host_us=10.0 + 0.45 * len(sizes))

    def fused_optimizer(self, op: str) -> Plan:
        """A fused optimizer step over all parameters."""
        share = [max(1, self._parameter_elements // 8)] * 8
        return self.multi_tensor(op, 4, share, 4, 7)

    def _moving(self, name: str, moved: float, share: float, shape: object, extra_us: float = 0.0) -> Kernel:
        duration = self._roofline.moving(moved, share, (name[:60], shape)) + extra_us
        blocks = max(1, int(moved / 8192))
        return Kernel(name, duration, (blocks, 1, 1), (128, 1, 1), call=self._launch)


_FOREACH = {
    "add": "BinaryOpListAlphaFunctor",
    "sub": "BinaryOpListAlphaFunctor",
    "mul": "BinaryOpScalarFunctor",
    "div": "BinaryOpListAlphaFunctor",
    "lerp": "TernaryOpScalarFunctor",
    "addcmul": "PointwiseOpScalarFunctor",
    "addcdiv": "PointwiseOpScalarListFunctor",
    "norm": "LpNormFunctor",
    "copy": "CopyFunctor",
    "zero": "ZeroFunctor",
}


def _portions(sizes: Sequence[int], tensors_each: int) -> list[tuple[int, int]]:
    """(tensors, elements) of each kernel that takes so many tensors, and no more than 320 chunks of 65,536 elements."""
    portions: list[tuple[int, int]] = []
    tensors = elements = chunks = 0
    for size in sizes:
        tensors, elements, chunks = tensors + 1, elements + size, chunks + ceil(size / _CHUNK_ELEMENTS)
        if tensors == tensors_each or chunks >= _CHUNKS_PER_KERNEL:
            kernels = max(1, round(chunks / _CHUNKS_PER_KERNEL))
            portions += [(max(1, tensors // kernels), elements // kernels)] * kernels
            tensors = elements = chunks = 0
    if tensors:
        portions.append((tensors, elements))
    return portions


def _growth(op: str, call: Call) -> float:
    """For resizing operators: by how much the result is larger than the input."""
    if not op.startswith("upsample") or op.endswith("backward"):
        return 1.0
    sizes, wanted = call.shape(0), call.value(1)
    if not wanted.startswith("[") or len(sizes) < 3:
        return 1.0
    target = prod(int(word) for word in wanted.strip("[]").split(",") if word.strip())
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


def _is_channels_last(sizes: Dims, strides: Dims) -> bool:
    return len(sizes) >= 4 and len(strides) == len(sizes) and strides[1] == 1 and sizes[1] > 1
