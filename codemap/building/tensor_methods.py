"""What methods of tensors and functions of `torch` give, by shape: `x.flatten(1)` and `torch.flatten(x, 1)` alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate
from math import ceil

from .layer_parts import DTYPES, dtype_name
from .signatures import Arguments
from .tensors import (
    MOST_NUMBERS,
    UNKNOWN_SIZE,
    Shape,
    axis,
    elementwise,
    matmul,
    product,
    reshaped,
    result,
    sizes_of,
)
from .values import Kind, LibraryValue, TensorValue, Unknown, Value

_WORDS_OF_SAME = """
log2 log10 exp2 sgn asin acos atan sinh cosh
abs relu relu_ gelu silu sigmoid tanh exp log sqrt rsqrt sin cos neg pow clamp clamp_ clip softmax log_softmax
contiguous clone detach cuda cpu dropout type_as add_ sub_ mul_
div_ fill_ zero_ normal_ uniform_ copy_ masked_fill masked_fill_ flip roll cumsum requires_grad_ leaky_relu
leaky_relu_ relu6 hardswish hardsigmoid elu mish softplus layer_norm batch_norm group_norm instance_norm
rms_norm normalize logsigmoid tril triu round floor ceil square erf reciprocal sign trunc_normal_ nan_to_num
scatter scatter_ index_fill cumprod argsort logit log1p expm1 celu selu rrelu threshold hardtanh dropout1d
dropout2d dropout3d alpha_dropout drop_path to_dense pin_memory share_memory_ bernoulli_ div mul add sub
true_divide maximum minimum where eq ne lt le gt ge logical_and logical_or logical_not remainder fmod atan2 lerp
addcmul
"""
_SAME = frozenset(_WORDS_OF_SAME.split())
_WORDS_OF_BINARY = """
add sub mul div true_divide maximum minimum eq ne lt le gt ge pow remainder atan2
"""
_BINARY = frozenset(_WORDS_OF_BINARY.split())
_REDUCES = frozenset(
    (
        "mean",
        "sum",
        "amax",
        "amin",
        "std",
        "var",
        "norm",
        "logsumexp",
        "prod",
        "all",
        "any",
        "argmax",
        "argmin",
        "nanmean",
    )
)
_PAIRS = frozenset(("max", "min", "median", "sort", "topk"))


def call_on_tensor(tensor: TensorValue, name: str, given: Arguments) -> Value:
    """What `tensor.name(...)` gives."""
    make = _METHODS.get(name)
    if make is not None:
        return make(tensor, given)
    if name in DTYPES:
        return replace(tensor, dtype=DTYPES[name], data=None)
    if name in ("to", "type"):
        dtypes = [dtype_name(one) for one in (*given.args, given.kwargs.get("dtype")) if isinstance(one, LibraryValue)]
        return replace(tensor, dtype=next((one for one in dtypes if one), tensor.dtype))
    if name in _BINARY and given.args:
        return elementwise(tensor, given.args[0])
    if name in _SAME:
        return replace(tensor, data=None, kind=Kind.PLAIN) if name not in _KEEPS else tensor
    if name in _REDUCES:
        return _reduced(tensor, given)
    if name in _PAIRS:
        return _pair(tensor, name, given)
    return result(None, tensor) if not name.startswith("is_") else Unknown(name)


_KEEPS = frozenset(("requires_grad_", "detach", "contiguous", "cuda", "cpu", "normal_", "uniform_", "zero_", "fill_"))


def _view(tensor: TensorValue, given: Arguments) -> Value:
    wanted = sizes_of(given.args) if given.args else sizes_of([given.kwargs.get("shape")])
    if given.args and isinstance(given.args[0], LibraryValue):
        return replace(tensor, dtype=dtype_name(given.args[0]))
    shape = reshaped(tensor.shape, wanted if wanted is None else _kept_sizes(given.args, wanted))
    same = tensor.data if shape is not None and len(shape) == 1 else None
    return replace(result(shape, tensor), data=same)


def _kept_sizes(given: list[Value], sizes: Shape) -> Shape:
    """Sizes that are not known as the very values that were given: they may be sizes of the tensor itself."""
    first = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    return tuple(one if isinstance(one, Unknown) else size for one, size in zip(first, sizes, strict=True))


def _flatten(tensor: TensorValue, given: Arguments) -> Value:
    shape = tensor.shape
    if shape is None:
        return result(None, tensor)
    first, last = axis(given.get(0, "start_dim", 0), len(shape)), axis(given.get(1, "end_dim", -1), len(shape))
    if first is None or last is None:
        return result(None, tensor)
    return result((*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :]), tensor)


def _unflatten(tensor: TensorValue, given: Arguments) -> Value:
    shape = tensor.shape
    at = axis(given.get(0, "dim"), len(shape)) if shape is not None else None
    sizes = sizes_of([given.get(1, "sizes")])
    if shape is None or at is None or sizes is None:
        return result(None, tensor)
    return result((*shape[:at], *(reshaped((shape[at],), sizes) or ()), *shape[at + 1 :]), tensor)


def _permute(tensor: TensorValue, given: Arguments) -> Value:
    order = sizes_of(given.args or [given.kwargs.get("dims")])
    if tensor.shape is None or order is None or len(order) != len(tensor.shape):
        return result(None if order is None else (UNKNOWN_SIZE,) * len(order), tensor)
    places = [axis(one, len(order)) for one in order]
    return result(tuple(UNKNOWN_SIZE if at is None else tensor.shape[at] for at in places), tensor)


def _transpose(tensor: TensorValue, given: Arguments) -> Value:
    shape = tensor.shape
    if shape is None:
        return result(None, tensor)
    one, two = axis(given.get(0, "dim0", -1), len(shape)), axis(given.get(1, "dim1", -2), len(shape))
    if one is None or two is None:
        return result((UNKNOWN_SIZE,) * len(shape), tensor)
    sizes = list(shape)
    sizes[one], sizes[two] = sizes[two], sizes[one]
    return result(tuple(sizes), tensor)


def _unsqueeze(tensor: TensorValue, given: Arguments) -> Value:
    at = axis(given.get(0, "dim"), len(tensor.shape) + 1) if tensor.shape is not None else None
    if tensor.shape is None or at is None:
        return result(None, tensor)
    return result((*tensor.shape[:at], 1, *tensor.shape[at:]), tensor)


def _squeeze(tensor: TensorValue, given: Arguments) -> Value:
    shape = tensor.shape
    if shape is None:
        return result(None, tensor)
    if not given.args and "dim" not in given.kwargs:
        return result(tuple(size for size in shape if size != 1), tensor)
    at = axis(given.get(0, "dim"), len(shape))
    if at is None:
        return result(None, tensor)
    return result(shape if shape[at] != 1 else (*shape[:at], *shape[at + 1 :]), tensor)


def _expand(tensor: TensorValue, given: Arguments) -> Value:
    sizes = sizes_of(given.args)
    if sizes is None or tensor.shape is None:
        return result(None, tensor)
    ahead = len(sizes) - len(tensor.shape)
    if ahead < 0:
        return result(None, tensor)
    old = (*(1,) * ahead, *tensor.shape)
    return result(tuple(had if size == -1 else size for size, had in zip(sizes, old, strict=True)), tensor)


def _repeat(tensor: TensorValue, given: Arguments) -> Value:
    times = sizes_of(given.args)
    if times is None or tensor.shape is None or len(times) < len(tensor.shape):
        return result(None, tensor)
    old = (*(1,) * (len(times) - len(tensor.shape)), *tensor.shape)
    return result(tuple(product((a, b)) for a, b in zip(times, old, strict=True)), tensor)


def _reduced(tensor: TensorValue, given: Arguments) -> Value:
    """`x.mean(dim, keepdim)` and its like."""
    is_norm_order = bool(given.args) and isinstance(given.args[0], (float, str))
    dims = given.kwargs.get("dim", given.args[1] if is_norm_order and len(given.args) > 1 else given.get(0, "dim"))
    keeps = given.kwargs.get("keepdim", given.args[1] if len(given.args) > 1 and not is_norm_order else False)
    shape = tensor.shape
    if dims is None:
        return result((), tensor)
    wanted = dims if isinstance(dims, (list, tuple)) else (dims,)
    places = [axis(one, len(shape)) for one in wanted] if shape is not None else [None]
    if shape is None or None in places:
        return result(None, tensor)
    kept = [(1 if at in places else size) for at, size in enumerate(shape) if keeps is True or at not in places]
    return result(tuple(kept), tensor)


def _pair(tensor: TensorValue, name: str, given: Arguments) -> Value:
    """`values, indices`, or one number, or the larger of two."""
    if given.args and isinstance(given.args[0], TensorValue):
        return elementwise(tensor, given.args[0])
    if name == "sort":
        return tensor, replace(tensor, dtype="int64")
    if name == "topk":
        at = axis(given.get(1, "dim", -1), len(tensor.shape)) if tensor.shape is not None else None
        sizes = (
            None
            if at is None or tensor.shape is None
            else (*tensor.shape[:at], given.get(0, "k"), *tensor.shape[at + 1 :])
        )
        return result(sizes, tensor), result(sizes, tensor, dtype="int64")
    if not given.args and "dim" not in given.kwargs:
        return result((), tensor)
    values = _reduced(tensor, given)
    assert isinstance(values, TensorValue)
    return values, replace(values, dtype="int64")


def _size(tensor: TensorValue, given: Arguments) -> Value:
    if tensor.shape is None:
        return Unknown("a shape that is not known")
    if not given.args and "dim" not in given.kwargs:
        return tensor.shape
    at = axis(given.get(0, "dim"), len(tensor.shape))
    return UNKNOWN_SIZE if at is None else tensor.shape[at]


def _numel(tensor: TensorValue, _given: Arguments) -> Value:
    return UNKNOWN_SIZE if tensor.shape is None else product(tensor.shape)


def _dim(tensor: TensorValue, _given: Arguments) -> Value:
    return Unknown("a shape that is not known") if tensor.shape is None else len(tensor.shape)


def _item(tensor: TensorValue, _given: Arguments) -> Value:
    return tensor.data[0] if tensor.data is not None and len(tensor.data) == 1 else Unknown("a tensor's value")


def _tolist(tensor: TensorValue, _given: Arguments) -> Value:
    return list(tensor.data) if tensor.data is not None and tensor.shape else Unknown("a tensor's values")


def _chunk(tensor: TensorValue, given: Arguments) -> Value:
    count, shape = given.get(0, "chunks"), tensor.shape
    at = axis(given.get(1, "dim", 0), len(shape)) if shape is not None else None
    if type(count) is not int or not 0 < count <= MOST_NUMBERS:
        return Unknown("parts whose number is not known")
    if shape is None or at is None or type(shape[at]) is not int:
        return tuple(result(None, tensor) for _ in range(count))
    total = shape[at]
    assert isinstance(total, int)
    return _split(tensor, Arguments([max(ceil(total / count), 1), at]))


def _split(tensor: TensorValue, given: Arguments) -> Value:
    size, shape = given.get(0, "split_size", given.kwargs.get("split_size_or_sections")), tensor.shape
    at = axis(given.get(1, "dim", 0), len(shape)) if shape is not None else None
    if isinstance(size, (list, tuple)):
        sizes: list[Value] = list(size)
    elif type(size) is int and size > 0 and shape is not None and at is not None and type(shape[at]) is int:
        total = shape[at]
        assert isinstance(total, int)
        if total // size > MOST_NUMBERS:
            return Unknown("too many parts")
        sizes = [min(size, total - start) for start in range(0, total, size)]
    else:
        return Unknown("parts whose number is not known")
    if shape is None or at is None:
        return tuple(result(None, tensor) for _ in sizes)
    if tensor.data is not None and all(type(one) is int for one in sizes):
        ends = list(accumulate(one for one in sizes if isinstance(one, int)))
        parts = [tensor.data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return tuple(TensorValue((len(part),), tensor.dtype, data=part) for part in parts)
    return tuple(result((*shape[:at], one, *shape[at + 1 :]), tensor) for one in sizes)


def _unbind(tensor: TensorValue, given: Arguments) -> Value:
    shape = tensor.shape
    at = axis(given.get(0, "dim", 0), len(shape)) if shape is not None else None
    if shape is None or at is None:
        return Unknown("parts whose number is not known")
    count = shape[at]
    if type(count) is not int or count > MOST_NUMBERS:
        return Unknown("parts whose number is not known")
    return tuple(result((*shape[:at], *shape[at + 1 :]), tensor) for _ in range(count))


def _matmul(tensor: TensorValue, given: Arguments) -> Value:
    return matmul(tensor, given.args[0] if given.args else given.kwargs.get("other"))


def _new(tensor: TensorValue, given: Arguments) -> Value:
    return replace(result(sizes_of(given.args), tensor), sources=frozenset())


def _expand_as(tensor: TensorValue, given: Arguments) -> Value:
    other = given.args[0] if given.args else None
    return result(other.shape if isinstance(other, TensorValue) else None, tensor)


_METHODS: Mapping[str, Callable[[TensorValue, Arguments], Value]] = {
    "view": _view,
    "reshape": _view,
    "flatten": _flatten,
    "unflatten": _unflatten,
    "permute": _permute,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "t": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "repeat": _repeat,
    "size": _size,
    "numel": _numel,
    "nelement": _numel,
    "dim": _dim,
    "item": _item,
    "tolist": _tolist,
    "chunk": _chunk,
    "split": _split,
    "unbind": _unbind,
    "matmul": _matmul,
    "bmm": _matmul,
    "mm": _matmul,
    "new_zeros": _new,
    "new_ones": _new,
    "new_empty": _new,
    "expand_as": _expand_as,
    "view_as": _expand_as,
    "reshape_as": _expand_as,
}
