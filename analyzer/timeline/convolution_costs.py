"""FLOPs and bytes of convolutions, forward and backward, with groups, dilation and transposition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from ..trace.model import Dims, OpInputs
from .op_inputs import Cost, element_bytes, flags, numbers, tensor_bytes


@dataclass(frozen=True, slots=True)
class ShapeHints:
    """Output sizes of convolutions that the call itself does not tell (traces without concrete inputs).

    A convolution's backward call records its output's gradient next to the input and the weight.
    """

    convolution_output: dict[tuple[Dims, Dims], Dims]

    @staticmethod
    def of(calls: Iterable[tuple[str, OpInputs]]) -> ShapeHints:
        """Collect hints from all calls of a trace."""
        outputs: dict[tuple[Dims, Dims], Dims] = {}
        for name, inputs in calls:
            if (found := backward_shapes(name, inputs)) is not None:
                grad, data, weight = found
                outputs[data, weight] = grad
        return ShapeHints(outputs)


CONVOLUTIONS: dict[str, tuple[int, int, int, int, int]] = {
    "conv1d": (3, 4, 5, -1, -1),
    "conv2d": (3, 4, 5, -1, -1),
    "conv3d": (3, 4, 5, -1, -1),
    "convolution": (3, 4, 5, 6, 7),
    "_convolution": (3, 4, 5, 6, 7),
    "convolution_overrideable": (3, 4, 5, 6, 7),
    "cudnn_convolution": (3, 2, 4, -1, -1),
    "cudnn_convolution_relu": (3, 4, 5, -1, -1),
    "cudnn_convolution_transpose": (4, 2, 5, -2, 3),
    "miopen_convolution": (4, 3, 5, -1, -1),
    "miopen_depthwise_convolution": (4, 3, 5, -1, -1),
    "miopen_convolution_transpose": (5, 3, 6, -2, 4),
    "mkldnn_convolution": (4, 3, 5, -1, -1),
    "_mps_convolution": (4, 3, 5, -1, -1),
    "thnn_conv2d": (4, 5, -1, -1, -1),
    "_slow_conv2d_forward": (4, 5, -1, -1, -1),
    "slow_conv3d": (4, 5, -1, -1, -1),
    "slow_conv3d_forward": (4, 5, -1, -1, -1),
    "slow_conv_dilated2d": (4, 5, 6, -1, -1),
    "slow_conv_dilated3d": (4, 5, 6, -1, -1),
    "conv_depthwise2d": (4, 5, 6, -1, -1),
    "_conv_depthwise2d": (4, 5, 6, -1, -1),
    "conv_depthwise3d": (4, 5, 6, -1, -1),
    "conv_transpose1d": (3, 4, 7, -2, 5),
    "conv_transpose2d": (3, 4, 7, -2, 5),
    "conv_transpose3d": (3, 4, 7, -2, 5),
}
"""Of each operator the numbers of the arguments that hold stride, padding, dilation, `transposed` and output padding.

-1: it has no such argument. -2 in the fourth place: it always transposes.
"""


BACKWARD: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(("convolution_backward", "_slow_conv2d_backward", "convolution_backward_overrideable"), (0, 1, 2)),
    **dict.fromkeys(
        ("cudnn_convolution_backward", "miopen_convolution_backward", "mkldnn_convolution_backward"), (1, 0, 2)
    ),
}
"""Of each backward operator the numbers of the arguments that hold the output's gradient, the input and the weight."""


def forward_cost(op: str, inputs: OpInputs, hints: ShapeHints) -> Cost | None:
    """Cost of a forward call; None when its output size is not recorded and no backward call tells it."""
    data, weight = inputs.shape(0), inputs.shape(1)
    output = output_of(op, inputs) or hints.convolution_output.get((data, weight))
    if output is None or len(data) < 3 or len(weight) != len(data):
        return None
    moved = tensor_bytes(inputs) + prod(output) * element_bytes(inputs, 0)
    return Cost(_convolution_flops(output, data, weight, _is_transposed(op, inputs)), moved, heavy=True)


def output_of(name: str, inputs: OpInputs) -> Dims:
    """Output sizes of a forward convolution's call, from what it recorded; () where that does not tell them."""
    op = name.removeprefix("aten::")
    data, weight = inputs.shape(0), inputs.shape(1)
    if op not in CONVOLUTIONS or len(data) < 3 or len(weight) != len(data):
        return ()
    stride_at, padding_at, dilation_at, _, output_padding_at = CONVOLUTIONS[op]
    stride, padding, dilation, extra = (
        numbers(inputs, at) for at in (stride_at, padding_at, dilation_at, output_padding_at)
    )
    return convolution_output(data, weight, _is_transposed(op, inputs), stride, padding, dilation, extra) or ()


def _is_transposed(op: str, inputs: OpInputs) -> bool:
    transposed_at = CONVOLUTIONS[op][3]
    return transposed_at == -2 or (transposed_at >= 0 and inputs.value(transposed_at) == "True")


def _convolution_flops(output: Dims, data: Dims, weight: Dims, transposed: bool) -> float:
    """Every element of the output (of the input if transposed) meets one filter of `weight`, groups included."""
    return 2.0 * prod(data if transposed else output) * prod(weight[1:])


def convolution_output(
    data: Dims, weight: Dims, transposed: bool, stride: Dims, padding: Dims, dilation: Dims, output_padding: Dims
) -> Dims | None:
    """Output sizes of a convolution (of groups 1 if transposed); None where they are not known or not positive.

    `stride`, `padding`, `dilation` and `output_padding` hold one value for each axis, or one for all.
    """
    kernel = weight[2:]
    if not stride or not padding or min(stride) < 1:
        return None
    axes = len(kernel)
    stride, padding = _spread(stride, axes), _spread(padding, axes)
    dilation, output_padding = _spread(dilation or (1,), axes), _spread(output_padding or (0,), axes)
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if transposed:
        sizes = [
            (n - 1) * s - 2 * p + w + o
            for n, s, p, w, o in zip(data[2:], stride, padding, span, output_padding, strict=True)
        ]
        return None if min(sizes, default=0) <= 0 else (data[0], weight[1], *sizes)
    sizes = [(n + 2 * p - w) // s + 1 for n, p, w, s in zip(data[2:], padding, span, stride, strict=True)]
    return None if min(sizes, default=0) <= 0 else (data[0], weight[0], *sizes)


def backward_shapes(name: str, inputs: OpInputs) -> tuple[Dims, Dims, Dims] | None:
    """(gradient of the output, input, weight) of a convolution's backward call; None if it is none."""
    order = BACKWARD.get(name.removeprefix("aten::"))
    if order is None:
        return None
    grad, data, weight = (inputs.shape(argument) for argument in order)
    return (grad, data, weight) if len(grad) == len(data) == len(weight) >= 3 else None


def backward_cost(op: str, inputs: OpInputs, grad: Dims, data: Dims, weight: Dims) -> Cost:
    """One product of the forward's size for the gradient of the input, one for that of the weight."""
    transposed = op == "convolution_backward" and inputs.value(7) == "True"
    mask_at = {"convolution_backward": 10, "_slow_conv2d_backward": 6}.get(op, max(len(inputs.concrete) - 1, 0))
    wanted = flags(inputs.value(mask_at))
    products = sum(wanted[:2]) if wanted else 2
    written = prod(data) * (wanted[0] if wanted else 1) + prod(weight) * (wanted[1] if wanted else 1)
    moved = tensor_bytes(inputs) + written * element_bytes(inputs, 0)
    return Cost(products * _convolution_flops(grad, data, weight, transposed), moved, heavy=True)


def _spread(values: Dims, axes: int) -> Dims:
    """One value for each axis, as PyTorch reads a single one."""
    return values if len(values) == axes else (values[0],) * axes
