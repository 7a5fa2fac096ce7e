"""FLOPs and bytes of one operator call. `costs.op_costs` applies these rules to a whole trace."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ..trace.model import OpInputs
from .convolution_costs import BACKWARD, CONVOLUTIONS, ShapeHints, backward_cost, backward_shapes, forward_cost
from .op_inputs import Cost, element_bytes, tensor_bytes, tensors


def has_rule(name: str) -> bool:
    """Whether `cost_of` may answer for operators of this name."""
    op = name.removeprefix("aten::")
    return op in CONVOLUTIONS or op in BACKWARD or op in _MATRIX_RULES or op.removesuffix("_") in _FLOPS_PER_ELEMENT


def cost_of(name: str, inputs: OpInputs, hints: ShapeHints) -> Cost | None:
    """Cost of one call; None when the operator is no compute, or its shapes were not recorded."""
    op = name.removeprefix("aten::")
    if op in CONVOLUTIONS:
        return forward_cost(op, inputs, hints)
    if (shapes := backward_shapes(name, inputs)) is not None:
        return backward_cost(op, inputs, *shapes)
    if (matrix_rule := _MATRIX_RULES.get(op)) is not None:
        return matrix_rule(inputs)
    if (per_element := _FLOPS_PER_ELEMENT.get(op.removesuffix("_"))) is not None:
        return _pointwise(op, inputs, per_element)
    return None


# Matrix work


def _mm(inputs: OpInputs, first: int = 0) -> Cost | None:
    a, b = inputs.shape(first), inputs.shape(first + 1)
    if len(a) < 2 or len(b) < 2:
        return None
    output = a[:-1] + b[-1:]
    flops = 2.0 * prod(a) * b[-1]
    return Cost(flops, tensor_bytes(inputs) + prod(output) * element_bytes(inputs, first), heavy=True)


def _addmm(inputs: OpInputs) -> Cost | None:
    return _mm(inputs, first=1)


def _vector_product(inputs: OpInputs) -> Cost | None:
    a, b = inputs.shape(0), inputs.shape(1)
    return Cost(2.0 * prod(a), tensor_bytes(inputs), heavy=True) if a and b else None


def _linear(inputs: OpInputs) -> Cost | None:
    data, weight = inputs.shape(0), inputs.shape(1)
    if not data or len(weight) != 2:
        return None
    output = prod(data[:-1]) * weight[0]
    return Cost(2.0 * output * weight[1], tensor_bytes(inputs) + output * element_bytes(inputs, 0), heavy=True)


def _attention(inputs: OpInputs, passes: float = 2.0, first: int = 0) -> Cost | None:
    """Two products of queries with keys and of weights with values; five of that size in the backward."""
    query, key, value = (inputs.shape(first + k) for k in range(3))
    if min(len(query), len(key), len(value)) < 3:
        return None
    scores = prod(query[:-1]) * key[-2]
    flops = scores * (query[-1] + value[-1]) * passes
    output = prod(query[:-1]) * value[-1]
    return Cost(flops, tensor_bytes(inputs) + output * element_bytes(inputs, first), heavy=True)


def _attention_by_length(inputs: OpInputs) -> Cost | None:
    """Attention whose tensors are (batch, length, heads, width), as the flash kernels' own operators take them."""
    query, key, value = (inputs.shape(k) for k in range(3))
    if min(len(query), len(key), len(value)) != 4:
        return None
    output = prod(query[:-1]) * value[-1]
    flops = 2.0 * prod(query[:-1]) * key[1] * (query[-1] + value[-1])
    return Cost(flops, tensor_bytes(inputs) + output * element_bytes(inputs, 0), heavy=True)


def _attention_backward(inputs: OpInputs) -> Cost | None:
    return _attention(inputs, passes=5.0, first=1)


_MATRIX_RULES: dict[str, Callable[[OpInputs], Cost | None]] = {
    "mm": _mm,
    "bmm": _mm,
    "_int_mm": _mm,
    "_scaled_mm": _mm,
    "addmm": _addmm,
    "addmm_": _addmm,
    "baddbmm": _addmm,
    "baddbmm_": _addmm,
    "addbmm": _addmm,
    "_addmm_activation": _addmm,
    "mv": _vector_product,
    "dot": _vector_product,
    "vdot": _vector_product,
    "linear": _linear,
    "mkldnn_linear": _linear,
    "scaled_dot_product_attention": _attention,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_flash_attention_forward": _attention_by_length,
    "_efficient_attention_forward": _attention_by_length,
    "_scaled_dot_product_flash_attention_backward": _attention_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_scaled_dot_product_efficient_attention_backward": _attention_backward,
    "_scaled_dot_product_cudnn_attention_backward": _attention_backward,
}


# Work per element

_FLOPS_PER_ELEMENT: dict[str, float] = {
    **dict.fromkeys(("copy", "fill", "zero", "cat", "clone", "index", "index_select", "gather", "flip", "roll"), 0.0),
    **dict.fromkeys(("masked_fill", "where", "embedding", "one_hot", "scatter", "index_put", "_index_put_impl"), 0.0),
    **dict.fromkeys(("add", "sub", "mul", "div", "neg", "rsub", "abs", "relu", "clamp", "clamp_min", "maximum"), 1.0),
    **dict.fromkeys(("minimum", "eq", "ne", "gt", "lt", "ge", "le", "threshold", "threshold_backward", "sign"), 1.0),
    **dict.fromkeys(("sqrt", "rsqrt", "exp", "log", "reciprocal", "pow", "square", "floor", "round", "clamp_max"), 1.0),
    **dict.fromkeys(("sum", "mean", "max", "min", "argmax", "argmin", "amax", "amin", "cumsum", "any", "all"), 1.0),
    **dict.fromkeys(("linalg_vector_norm", "norm", "bitwise_and", "bitwise_or", "bitwise_not", "isfinite"), 2.0),
    **dict.fromkeys(("addcmul", "addcdiv", "lerp", "hardtanh", "leaky_relu", "hardtanh_backward", "dropout"), 3.0),
    **dict.fromkeys(("native_dropout", "native_dropout_backward", "sigmoid", "tanh", "hardswish"), 4.0),
    **dict.fromkeys(("silu", "sigmoid_backward", "tanh_backward", "hardswish_backward", "hardsigmoid"), 5.0),
    **dict.fromkeys(("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"), 5.0),
    **dict.fromkeys(("gelu", "silu_backward", "var", "std", "var_mean"), 8.0),
    **dict.fromkeys(("native_layer_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"), 8.0),
    **dict.fromkeys(("native_group_norm", "_batch_norm_with_update", "_fused_rms_norm", "rms_norm"), 8.0),
    **dict.fromkeys(("gelu_backward", "native_layer_norm_backward", "native_batch_norm_backward"), 14.0),
    **dict.fromkeys(("cudnn_batch_norm_backward", "miopen_batch_norm_backward", "native_group_norm_backward"), 14.0),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool2d_with_indices_backward", "_adaptive_avg_pool2d"), 1.0),
    **dict.fromkeys(("avg_pool2d", "avg_pool2d_backward", "_adaptive_avg_pool2d_backward", "mkldnn_max_pool2d"), 1.0),
    **dict.fromkeys(("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d", "grid_sampler_2d"), 8.0),
    **dict.fromkeys(("mse_loss", "mse_loss_backward", "nll_loss_forward", "nll_loss_backward"), 3.0),
    **dict.fromkeys(("binary_cross_entropy_with_logits", "smooth_l1_loss", "huber_loss", "l1_loss"), 8.0),
    **dict.fromkeys(("normal", "uniform", "bernoulli", "random"), 4.0),
}
"""Rough FLOPs for each element of the largest tensor: these operators are bound by memory, whatever the count."""

_REDUCTIONS = frozenset(
    ("sum", "mean", "max", "min", "argmax", "argmin", "amax", "amin", "any", "all", "linalg_vector_norm", "norm", "var")
) | frozenset(("std", "var_mean", "_adaptive_avg_pool2d", "mse_loss", "nll_loss_forward", "l1_loss"))
_WRITE_ONLY = frozenset(("fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_"))


def _pointwise(op: str, inputs: OpInputs, per_element: float) -> Cost | None:
    sizes = [(prod(dims), argument) for argument, dims in tensors(inputs)]
    if not sizes:
        return None
    largest, argument = max(sizes)
    element = element_bytes(inputs, argument)
    if op in _WRITE_ONLY:
        moved = largest * element
    elif op in _REDUCTIONS or op == "copy_":
        moved = tensor_bytes(inputs)
    elif op == "cat":
        largest = sum(size for size, _ in sizes)
        moved = 2 * tensor_bytes(inputs)
    else:
        moved = tensor_bytes(inputs) + largest * element
    return Cost(per_element * largest, float(moved))
