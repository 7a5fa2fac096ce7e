"""Operators over lists of tensors, which one kernel works through: `_foreach_*` and fused optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from .kernels import Kernel, Plan
from .roofline import Roofline

_PER_KERNEL = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
"""Tensors that one multi-tensor kernel takes, by lists (MultiTensorApply.cuh)."""
_CHUNK_ELEMENTS = 65536
_CHUNKS_PER_KERNEL = 320
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


class ManyTensors:
    """Plans of such operators on one device."""

    def __init__(self, roofline: Roofline, parameter_elements: int) -> None:
        self._roofline = roofline
        self._parameter_elements = parameter_elements

    def plan(self, op: str, lists: int, sizes: Sequence[int], element_bytes: int, passes: int) -> Plan:
        """An operator over tensors of these sizes (elements): one kernel for each chunk of them."""
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
            kernels.append(
                Kernel(name, duration + 0.8, (blocks, 1, 1), (512, 1, 1), call=self._roofline.hardware.launch_call)
            )
        return Plan(tuple(kernels), host_us=10.0 + 0.45 * len(sizes))

    def fused_optimizer(self, op: str) -> Plan:
        """A fused optimizer step over all parameters."""
        share = [max(1, self._parameter_elements // 8)] * 8
        return self.plan(op, 4, share, 4, 7)


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
