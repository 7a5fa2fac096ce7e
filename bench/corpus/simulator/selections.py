"""Operators that sort, select, or suppress boxes. Where the result's size depends on data, the host waits for it."""

from __future__ import annotations

from math import prod

from .kernels import Plan
from .pointwise import NAMED
from .roofline import Roofline, moving_kernel
from .shapes import Call

SELECTIONS: dict[str, tuple[str, ...]] = {
    "nonzero": (
        "void at_cuda_detail::cub::DeviceReduceSingleTileKernel<at_cuda_detail::cub::DeviceReducePolicy<bool, int> >()",
        "void at_cuda_detail::cub::DeviceCompactInitKernel<at_cuda_detail::cub::ScanTileState<int, true> >()",
        "void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::DispatchSelectIf<long> >()",
        "void at::native::write_indices<long>(long*, at::native::TensorDims<long>, int, int)",
    ),
    "sort": (
        "void at_cuda_detail::cub::DeviceRadixSortHistogramKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<float, "
        "long> >()",
        "void at_cuda_detail::cub::DeviceRadixSortExclusiveSumKernel<at_cuda_detail::"
        "cub::DeviceRadixSortPolicy<float> >()",
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<float, "
        "long> >()",
    ),
    "topk": (
        "void at::native::mbtopk::radixFindKthValues<float, unsigned int, unsigned int, 2>()",
        "void at::native::mbtopk::gatherTopK<float, unsigned int, 2>()",
        "void at::native::bitonicSortKVInPlace<2, -1, 16, 16, float, "
        "long, at::native::GTOp<float, true>, unsigned int>()",
    ),
    "unique": (
        "void at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<long, "
        "long> >()",
        "void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::DispatchSelectIf<long> >()",
    ),
}
"""Operators that sort or select; those in `WAITING` copy the count of what they found to the host and wait for it."""
WAITING = frozenset(("nonzero", "masked_select", "unique", "_unique", "_unique2", "unique_dim", "unique_consecutive"))
NMS = "torchvision::nms"
_COMPARING = (
    "void vision::ops::(anonymous namespace)::nms_kernel_impl<float>(int, double, float const*, unsigned long long*)"
)
_KEEPING = "vision::ops::(anonymous namespace)::gather_keep_from_mask(bool*, unsigned long long const*, int)"
_COMPARISON_US = 3.2e-3
"""One pair of boxes, on one multiprocessor."""


class SelectingKernels:
    """Plans of such operators on one device."""

    def __init__(self, roofline: Roofline) -> None:
        self._roofline = roofline

    def plan(self, op: str, call: Call) -> Plan | None:
        """What an operator runs; None for those that do something else."""
        if op == NMS:
            return self._suppression(call)
        return self._selection(op, call) if op in SELECTIONS or op in WAITING else None

    def _selection(self, op: str, call: Call) -> Plan:
        sizes = call.shape(0)
        all_names = SELECTIONS.get(op) or SELECTIONS["unique" if "unique" in op else "nonzero"]
        moved = float(prod(sizes) * call.element_bytes(0))
        kernels = tuple(
            moving_kernel(self._roofline, name, 2 * moved, 0.25, (name, sizes), extra_us=1.0) for name in all_names
        )
        return Plan(kernels, host_us=18.0, waits=op in WAITING)

    def _suppression(self, call: Call) -> Plan | None:
        """torchvision's NMS: boxes are sorted, each compared with all, and the host waits for how many are kept."""
        boxes = prod(call.shape(0)[:1])
        if not boxes:
            return None
        roofline = self._roofline
        sorting = tuple(moving_kernel(roofline, name, 12.0 * boxes, 0.2, boxes, 1.5) for name in SELECTIONS["sort"])
        compared_us = 2.0 + boxes * boxes * _COMPARISON_US / self._roofline.hardware.units
        gathering = f"void at::native::{NAMED['index_select'][0].replace('{T}', 'float')}()"
        kernels = (
            *sorting,
            moving_kernel(self._roofline, gathering, 32.0 * boxes, 0.3, boxes),
            moving_kernel(self._roofline, _COMPARING, 0.0, 0.3, boxes, compared_us),
            moving_kernel(self._roofline, _KEEPING, 0.0, 0.3, boxes, 2.0 + boxes / 64),
        )
        return Plan(kernels, host_us=30.0, waits=True)
