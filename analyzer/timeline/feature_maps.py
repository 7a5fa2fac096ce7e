"""Feature maps: what goes in and out of each layer of the typical step.

Worked out when asked for. A trace records what goes into an operator, not what comes out: outputs are
computed where the arguments tell them, else taken from what the next operator gets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from ..trace.model import NONE, Dims, OpInputs
from .convolution_costs import output_of
from .layout_changes import layout_of
from .model import Timeline
from .module_names import innermost_modules
from .op_inputs import element_bytes, numbers
from .select import in_typical_step, outermost_forward

_RANKS = (3, 4, 5)
_SAME_SIZE = re.compile(
    r"aten::(batch_norm|instance_norm|group_norm|layer_norm|relu|gelu|silu|sigmoid|tanh|hardswish|hardtanh|leaky_relu"
    r"|elu|mish|clamp\w*|dropout\w*|add|sub|mul|div|contiguous|clone|to|softmax)_?$"
)
_RESIZES = re.compile(r"aten::(conv\w*|_convolution|cudnn_convolution|\w*pool[123]d\w*|upsample_\w+|pixel_\w*shuffle)$")
_POOL_AT = (1, 2, 3)
"""Where a pooling's kernel, stride and padding are recorded."""


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """One call of one layer in the typical step."""

    row: int
    """The operator."""
    module: str
    """The module that called it (`Conv2d_3`); "" without Python stacks."""
    inside: str
    """The module round that one (`BasicBlock_1`); "" if there is none."""
    op: str
    """The operator's name without `aten::`."""
    input_shape: Dims
    output_shape: Dims
    """() where nothing tells it."""
    dtype: str
    """Of the input, as the profiler names it (`float`, `c10::Half`)."""
    output_bytes: int
    """0 where the output's size is not known."""
    layout: str
    """Of the input in memory: "NCHW", "NHWC", "NCDHW", "NDHWC", "other"; "" where strides were not recorded."""


def feature_maps(timeline: Timeline) -> tuple[FeatureMap, ...]:
    """Every layer of the typical step that works on images, volumes or sequences of features, in time order."""
    trace = timeline.trace
    top = in_typical_step(timeline, outermost_forward(timeline))
    found: list[FeatureMap] = []
    for row, after in pairwise([*top.tolist(), NONE]):
        name, inputs = trace.name_of(row), trace.inputs_of(row)
        shape = inputs.shape(0)
        if len(shape) not in _RANKS or not (_SAME_SIZE.match(name) or _RESIZES.match(name)):
            continue
        output = _output(timeline, row, name, inputs, after)
        module, inside = innermost_modules(timeline, row)
        found.append(
            FeatureMap(
                row=row,
                module=module,
                inside=inside,
                op=name.removeprefix("aten::"),
                input_shape=shape,
                output_shape=output,
                dtype=inputs.dtype(0),
                output_bytes=prod(output) * element_bytes(inputs, 0) if output else 0,
                layout=layout_of(shape, inputs.stride(0)),
            )
        )
    return tuple(found)


def _output(timeline: Timeline, row: int, name: str, inputs: OpInputs, after: int) -> Dims:
    if _SAME_SIZE.match(name):
        return inputs.shape(0)
    output = _convolution_output(timeline, row) or _pool_output(name, inputs)
    if output or after == NONE:
        return output
    # What comes next gets it, if it has as many axes and images; its channels may be joined with others'.
    given = timeline.trace.inputs_of(after).shape(0)
    is_it = len(given) == len(inputs.shape(0)) and given[:2] == inputs.shape(0)[:2]
    return given if is_it else ()


def _convolution_output(timeline: Timeline, row: int) -> Dims:
    """From the operator itself, else from one inside it, which has the padding as numbers."""
    trace = timeline.trace
    waiting = [row]
    while waiting:
        current = waiting.pop()
        if output := output_of(trace.name_of(current), trace.inputs_of(current)):
            return output
        children = timeline.tree.children(current).tolist()
        waiting.extend(child for child in children if "conv" in trace.name_of(child))
    return ()


def _pool_output(name: str, inputs: OpInputs) -> Dims:
    """Of poolings with recorded arguments; rounding up (`ceil_mode`) is left to what follows."""
    shape = inputs.shape(0)
    first = numbers(inputs, _POOL_AT[0])
    if "adaptive" in name and first:
        sizes = first if len(first) > 1 else first * (len(shape) - 2)
        return (*shape[: len(shape) - len(sizes)], *sizes)
    if "pool" not in name or not first or inputs.value(5) == "True" or inputs.value(4) == "True":
        return ()
    axes = len(shape) - 2
    kernel, stride, padding = (_spread(numbers(inputs, at), axes) for at in _POOL_AT)
    stride, padding = stride or kernel, padding or (0,) * axes
    sizes = [
        (size + 2 * p - k) // s + 1 for size, k, s, p in zip(shape[2:], kernel, stride, padding, strict=True) if s > 0
    ]
    return (*shape[:2], *sizes) if len(sizes) == axes and min(sizes, default=0) > 0 else ()


def _spread(values: Dims, axes: int) -> Dims:
    return values * axes if len(values) == 1 else values
