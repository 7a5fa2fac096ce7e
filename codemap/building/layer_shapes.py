"""What layers of `torch.nn` and functions of `torch.nn.functional` give for what they get, by shape.

Checked in the tests against torch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil, floor

from .layer_parts import Bound, repeated
from .layers import axes_of, bind_layer
from .signatures import Arguments
from .tensor_methods import call_on_tensor
from .tensors import UNKNOWN_SIZE, Shape, axis, result
from .values import TensorValue, Value

_SAME = (
    "BatchNorm InstanceNorm LayerNorm GroupNorm RMSNorm LocalResponseNorm Dropout AlphaDropout FeatureAlphaDropout "
    "ReLU ReLU6 GELU SiLU Mish Sigmoid Tanh ELU CELU SELU LeakyReLU PReLU RReLU Hardtanh Hardswish Hardsigmoid "
    "Hardshrink Softmax LogSoftmax Softmin Softplus Softshrink Softsign Tanhshrink Threshold LogSigmoid SyncBatchNorm "
    "Softmax2d ChannelShuffle TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder "
    "CrossMapLRN2d"
)
_SAME_SIZE = frozenset(_SAME.split())


def layer_output(name: str, bound: Bound, given: Arguments) -> Value:
    """What the layer `name` with the constructor's arguments `bound` gives; sizes that do not follow are `Unknown`.

    `bound` is empty where the constructor was not seen to run: nothing is known of the arguments then.
    """
    first = next((one for one in [*given.args, *given.kwargs.values()] if isinstance(one, TensorValue)), None)
    if first is None:
        return result(None)
    if name == "Identity":
        return first
    kind = name[:-2] if axes_of(name) else name
    if kind in _SAME_SIZE:
        return result(first.shape, first)
    make = _LAYERS.get(kind)
    if make is None:
        return result(None, first)
    return make(axes_of(name), bound or bind_layer(name, Arguments(is_open=True)), first, given)


def call_functional(name: str, given: Arguments) -> Value | None:
    """What a function of `torch.nn.functional` that has a layer gives; None for any other."""
    first = given.get(0, "input", given.get(0, "query"))
    if not isinstance(first, TensorValue):
        return None
    rest = Arguments(given.args[1:], {key: one for key, one in given.kwargs.items() if key != "input"})
    if name in _POOLS:
        return layer_output(_POOLS[name], bind_layer(_POOLS[name], rest), Arguments([first]))
    if name in ("interpolate", "upsample"):
        return layer_output("Upsample", bind_layer("Upsample", rest), Arguments([first]))
    make = _FUNCTIONS.get(name)
    return make(first, rest) if make is not None else None


def _convolved(
    size: Value, kernel: Value, stride: Value, padding: Value, dilation: Value, *, ceils: bool = False
) -> Value:
    """How many places a window has along an axis."""
    numbers = [one for one in (size, kernel, stride, padding, dilation) if isinstance(one, int)]
    if len(numbers) < 5 or numbers[2] <= 0:
        return UNKNOWN_SIZE
    length, width, step, pad, spread = numbers
    exact = (length + 2 * pad - spread * (width - 1) - 1) / step
    count = (ceil(exact) if ceils else floor(exact)) + 1
    if ceils and (count - 1) * step >= length + pad:
        count -= 1
    return max(count, 0)


def _spatial(shape: Shape | None, axes: int) -> tuple[Shape, Shape] | None:
    """A shape parted before its axes of space; None if there are too few."""
    return (shape[: len(shape) - axes], shape[len(shape) - axes :]) if shape is not None and len(shape) > axes else None


def _convolution(axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    parts = _spatial(first.shape, axes)
    if parts is None:
        return result(None, first)
    lead, sizes = parts
    padding = bound["padding"]
    if padding == "same":
        return result((*lead[:-1], bound["out_channels"], *sizes), first)
    windows = [repeated(bound[key], axes) for key in ("kernel_size", "stride", "dilation")]
    pads = repeated(0 if padding == "valid" else padding, axes)
    found = [_convolved(size, k, s, p, d) for size, k, s, d, p in zip(sizes, *windows, pads, strict=False)]
    return result((*lead[:-1], bound["out_channels"], *found), first)


def _transposed(axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    parts = _spatial(first.shape, axes)
    if parts is None:
        return result(None, first)
    lead, sizes = parts
    names = ("kernel_size", "stride", "padding", "output_padding", "dilation")
    found: list[Value] = []
    for row in zip(sizes, *(repeated(bound[key], axes) for key in names), strict=False):
        numbers = [one for one in row if isinstance(one, int)]
        if len(numbers) < len(row):
            found.append(UNKNOWN_SIZE)
            continue
        size, k, s, p, extra, d = numbers
        found.append((size - 1) * s - 2 * p + d * (k - 1) + extra + 1)
    return result((*lead[:-1], bound["out_channels"], *found), first)


def _pooled(axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    parts = _spatial(first.shape, axes)
    if parts is None:
        return result(None, first)
    lead, sizes = parts
    kernel = repeated(bound["kernel_size"], axes)
    stride = kernel if bound["stride"] in (None, (), []) else repeated(bound["stride"], axes)
    padding, dilation = repeated(bound.get("padding", 0), axes), repeated(bound.get("dilation", 1), axes)
    found = [
        _convolved(size, k, s, p, d, ceils=bound.get("ceil_mode") is True)
        for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=False)
    ]
    pooled = result((*lead, *found), first)
    return (pooled, replace(pooled, dtype="int64")) if bound.get("return_indices") is True else pooled


def _adaptive(axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    parts = _spatial(first.shape, axes)
    if parts is None:
        return result(None, first)
    wanted = repeated(bound["output_size"], axes)
    sizes = [had if size is None else size for size, had in zip(wanted, parts[1], strict=False)]
    return result((*parts[0], *sizes), first)


def _linear(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    return result(None if first.shape is None else (*first.shape[:-1], bound["out_features"]), first)


def _embedding(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    shape = None if first.shape is None else (*first.shape, bound["embedding_dim"])
    return result(shape, first, dtype="float32")


def _flatten(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    return call_on_tensor(first, "flatten", Arguments([bound["start_dim"], bound["end_dim"]]))


def _unflatten(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    return call_on_tensor(first, "unflatten", Arguments([bound["dim"], bound["unflattened_size"]]))


def _shuffle(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    by, shape = bound.get("upscale_factor"), first.shape
    if type(by) is not int or shape is None or len(shape) < 3 or not all(type(one) is int for one in shape[-3:]):
        return result(None, first)
    c, h, w = (one for one in shape[-3:] if isinstance(one, int))
    return result((*shape[:-3], c // (by * by), h * by, w * by), first)


def _unshuffle(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    by, shape = bound.get("downscale_factor"), first.shape
    if type(by) is not int or by < 1 or shape is None or not all(type(one) is int for one in shape[-3:]):
        return result(None, first)
    c, h, w = (one for one in shape[-3:] if isinstance(one, int))
    return result((*shape[:-3], c * by * by, h // by, w // by), first)


def _upsample(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    shape = first.shape
    if shape is None or len(shape) < 3:
        return result(None, first)
    axes = len(shape) - 2
    if bound["size"] is not None:
        return result((*shape[:2], *repeated(bound["size"], axes)[:axes]), first)
    scales = repeated(bound["scale_factor"], axes)
    sizes = [
        floor(size * by) if isinstance(size, int) and isinstance(by, (int, float)) else UNKNOWN_SIZE
        for size, by in zip(shape[2:], scales, strict=False)
    ]
    return result((*shape[:2], *sizes), first)


def _padded(axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    return _with_padding(first, list(repeated(bound["padding"], 2 * axes)))


def _with_padding(first: TensorValue, padding: list[Value]) -> Value:
    """Two numbers for each axis, the last axis first."""
    shape = first.shape
    if shape is None or len(padding) > 2 * len(shape):
        return result(None, first)
    sizes = list(shape)
    for at in range(len(padding) // 2):
        before, after, size = padding[2 * at], padding[2 * at + 1], sizes[-1 - at]
        numbers = [one for one in (before, after, size) if isinstance(one, int)]
        sizes[-1 - at] = sum(numbers) if len(numbers) == 3 else UNKNOWN_SIZE
    return result(tuple(sizes), first)


def _attention(_axes: int, bound: Bound, first: TensorValue, given: Arguments) -> Value:
    return result(first.shape, *given.args), result(None, first)


def _recurrent(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    size = bound.get("proj_size") or bound["hidden_size"]
    both = 2 if bound["bidirectional"] is True else 1
    width = size * both if isinstance(size, int) else UNKNOWN_SIZE
    return result(None if first.shape is None else (*first.shape[:-1], width), first), result(None, first)


def _glu(_axes: int, bound: Bound, first: TensorValue, _given: Arguments) -> Value:
    at = axis(bound["dim"], len(first.shape)) if first.shape is not None else None
    if first.shape is None or at is None:
        return result(None, first)
    size = first.shape[at]
    half = size // 2 if isinstance(size, int) else UNKNOWN_SIZE
    return result((*first.shape[:at], half, *first.shape[at + 1 :]), first)


_LAYERS: Mapping[str, Callable[[int, Bound, TensorValue, Arguments], Value]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "MaxPool": _pooled,
    "AvgPool": _pooled,
    "LPPool": _pooled,
    "AdaptiveAvgPool": _adaptive,
    "AdaptiveMaxPool": _adaptive,
    "Linear": _linear,
    "NonDynamicallyQuantizableLinear": _linear,
    "Bilinear": _linear,
    "Embedding": _embedding,
    "Flatten": _flatten,
    "Unflatten": _unflatten,
    "PixelShuffle": _shuffle,
    "PixelUnshuffle": _unshuffle,
    "Upsample": _upsample,
    "UpsamplingNearest": _upsample,
    "UpsamplingBilinear": _upsample,
    "ZeroPad": _padded,
    "ConstantPad": _padded,
    "ReflectionPad": _padded,
    "ReplicationPad": _padded,
    "CircularPad": _padded,
    "MultiheadAttention": _attention,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "GLU": _glu,
}
_POOLS = {
    f"{function}{axes}d": f"{layer}{axes}d"
    for axes in (1, 2, 3)
    for function, layer in (
        ("max_pool", "MaxPool"),
        ("avg_pool", "AvgPool"),
        ("adaptive_avg_pool", "AdaptiveAvgPool"),
        ("adaptive_max_pool", "AdaptiveMaxPool"),
    )
}


def _pad(first: TensorValue, rest: Arguments) -> Value:
    padding = rest.get(0, "pad")
    return _with_padding(first, list(padding)) if isinstance(padding, (list, tuple)) else result(None, first)


def _attended(first: TensorValue, rest: Arguments) -> Value:
    """`scaled_dot_product_attention(query, key, value)`: the query's shape with the value's width."""
    value = rest.get(1, "value")
    if first.shape is None or not isinstance(value, TensorValue) or value.shape is None:
        return result(None, first, *rest.args)
    return result((*first.shape[:-1], value.shape[-1]), first, *rest.args)


def _function_linear(first: TensorValue, rest: Arguments) -> Value:
    weight = rest.get(0, "weight")
    if first.shape is None or not isinstance(weight, TensorValue) or weight.shape is None or len(weight.shape) != 2:
        return result(None, first)
    return result((*first.shape[:-1], weight.shape[0]), first)


def _function_convolution(axes: int) -> Callable[[TensorValue, Arguments], Value]:
    def make(first: TensorValue, rest: Arguments) -> Value:
        weight = rest.get(0, "weight")
        if not isinstance(weight, TensorValue) or weight.shape is None or len(weight.shape) != axes + 2:
            return result(None, first)
        bound: dict[str, Value] = {
            "out_channels": weight.shape[0],
            "kernel_size": weight.shape[2:],
            "stride": rest.get(2, "stride", 1),
            "padding": rest.get(3, "padding", 0),
            "dilation": rest.get(4, "dilation", 1),
        }
        return _convolution(axes, bound, first, rest)

    return make


def _function_embedding(first: TensorValue, rest: Arguments) -> Value:
    weight = rest.get(0, "weight")
    width = weight.shape[-1] if isinstance(weight, TensorValue) and weight.shape else UNKNOWN_SIZE
    return result(None if first.shape is None else (*first.shape, width), first, dtype="float32")


def _function_glu(first: TensorValue, rest: Arguments) -> Value:
    return _glu(0, {"dim": rest.get(0, "dim", -1)}, first, rest)


def _function_shuffle(first: TensorValue, rest: Arguments) -> Value:
    return _shuffle(0, {"upscale_factor": rest.get(0, "upscale_factor")}, first, rest)


_FUNCTIONS: Mapping[str, Callable[[TensorValue, Arguments], Value]] = {
    "pad": _pad,
    "scaled_dot_product_attention": _attended,
    "linear": _function_linear,
    "conv1d": _function_convolution(1),
    "conv2d": _function_convolution(2),
    "conv3d": _function_convolution(3),
    "embedding": _function_embedding,
    "glu": _function_glu,
    "pixel_shuffle": _function_shuffle,
}
