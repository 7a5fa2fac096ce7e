"""What the trace says of `torch.backends.cudnn.benchmark`, and of convolutions that try several kernels in one call."""

from __future__ import annotations

import numpy as np

from ..timeline.columns import distinct
from ..timeline.convolution_calls import ConvCalls
from ..timeline.model import KernelClass, Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import launched_by, steady
from ..trace.model import Category, IntArray
from .precision import switches

_FLAG_AT = {"aten::cudnn_convolution": 6, "aten::_convolution": 9, "aten::miopen_convolution": 7}
"""Where operators are given the flag."""
_CONVOLVING = (
    KernelClass.CONV_TENSOR_CORE,
    KernelClass.CONV_SIMT,
    KernelClass.GEMM_TENSOR_CORE,
    KernelClass.GEMM_SIMT,
)
_IS_CONVOLVING = np.array([kind in _CONVOLVING for kind in KernelClass], dtype=np.bool_)


def autotuning(timeline: Timeline) -> bool | None:
    """Whether convolutions were called with `benchmark=True`.

    Where arguments were not recorded it is what the recording run noted of the switch; None without either.
    """
    trace = timeline.trace
    said: set[str] = set()
    for name, argument in _FLAG_AT.items():
        rows = trace.rows_named((name,))
        rows = steady(timeline, rows[trace.cat[rows] == Category.CPU_OP])
        said.update(of_each(trace, rows, lambda inputs, at=argument: inputs.value(at)))
    if "True" in said:
        return True
    return False if "False" in said else switches(timeline).cudnn_benchmark


def kernels_tried(timeline: Timeline, hosts: IntArray) -> list[IntArray]:
    """For each host operator (not overlapping) the convolution and matrix kernels that it launched, in time order."""
    classes = timeline.kernel_class
    launched = launched_by(timeline, hosts)
    return [np.sort(rows[_IS_CONVOLVING[classes[rows]]]) for rows in launched]


def shapes_vary(timeline: Timeline, calls: ConvCalls) -> bool:
    """Whether different steady steps convolve inputs of different sizes; false where sizes were not recorded."""
    steps = timeline.steps.of[calls.rows]
    sizes: dict[int, set[tuple[tuple[int, ...], tuple[int, ...]]]] = {int(step): set() for step in distinct(steps)}
    for step, shape in zip(steps.tolist(), calls.shapes, strict=True):
        sizes[step].add((shape.data, shape.weight))
    seen = list(sizes.values())
    return any(one != seen[0] for one in seen)
