"""What functions of `torch` give that are no methods of one tensor: joining several, and making new ones."""

from __future__ import annotations

from .layer_parts import dtype_name
from .signatures import Arguments
from .tensor_methods import call_on_tensor
from .tensors import (
    MOST_NUMBERS,
    UNKNOWN_SIZE,
    axis,
    broadcast,
    result,
    sizes_of,
)
from .values import TensorValue, Value


def _cat(tensors: Value, given: Arguments) -> Value:
    parts = list(tensors) if isinstance(tensors, (list, tuple)) else []
    shapes = [part.shape for part in parts if isinstance(part, TensorValue) and part.shape is not None]
    at = axis(given.get(1, "dim", given.kwargs.get("axis", 0)), len(shapes[0])) if shapes else None
    if not shapes or len(shapes) < len(parts) or at is None or any(len(shape) != len(shapes[0]) for shape in shapes):
        return result(None, *parts)
    sizes = [shape[at] for shape in shapes]
    known = [size for size in sizes if isinstance(size, int)]
    joined: Value = sum(known) if len(known) == len(sizes) else UNKNOWN_SIZE
    rest = broadcast([(*shape[:at], 1, *shape[at + 1 :]) for shape in shapes])
    return result(None if rest is None else (*rest[:at], joined, *rest[at + 1 :]), *parts)


def _stack(tensors: Value, given: Arguments) -> Value:
    parts = list(tensors) if isinstance(tensors, (list, tuple)) else []
    shapes = [part.shape for part in parts if isinstance(part, TensorValue)]
    first = shapes[0] if shapes else None
    at = axis(given.get(1, "dim", 0), len(first) + 1) if first is not None else None
    if first is None or at is None or len(shapes) < len(parts):
        return result(None, *parts)
    return result((*first[:at], len(parts), *first[at:]), *parts)


def _meshgrid(given: Arguments) -> Value:
    parts = list(given.args[0]) if given.args and isinstance(given.args[0], (list, tuple)) else given.args
    tensors = [part for part in parts if isinstance(part, TensorValue)]
    sizes = [one.shape[0] if one.shape else UNKNOWN_SIZE for one in tensors]
    if given.kwargs.get("indexing") == "xy" and len(sizes) > 1:
        sizes[:2] = [sizes[1], sizes[0]]
    return tuple(result(tuple(sizes), one) for one in tensors)


def call_function(name: str, given: Arguments) -> Value | None:
    """What a function of `torch` or `torch.nn.functional` gives on tensors; None if it is not known here."""
    if name in _FACTORIES:
        return _made(name, given)
    if name.endswith("_like") and given.args and isinstance(given.args[0], TensorValue):
        return TensorValue(
            given.args[0].shape,
            dtype_name(given.kwargs.get("dtype")) if "dtype" in given.kwargs else given.args[0].dtype,
        )
    if name in ("cat", "concat", "concatenate"):
        return _cat(given.get(0, "tensors"), given)
    if name in ("stack", "hstack", "vstack"):
        return _stack(given.get(0, "tensors"), given) if name == "stack" else result(None, *given.args)
    if name == "meshgrid":
        return _meshgrid(given)
    if name == "einsum":
        return _einsum(given)
    if name == "where" and len(given.args) == 3:
        return _where(given)
    first = given.get(0, "input")
    if isinstance(first, TensorValue):
        rest = Arguments(
            given.args[1:], {key: one for key, one in given.kwargs.items() if key != "input"}, given.is_open
        )
        return call_on_tensor(first, name, rest)
    return None


def _where(given: Arguments) -> Value:
    shapes = [one.shape for one in given.args if isinstance(one, TensorValue)]
    return result(broadcast(shapes), *given.args[1:])


def _einsum(given: Arguments) -> Value:
    form, *operands = given.args or [None]
    if not isinstance(form, str) or "->" not in form or "." in form:
        return result(None, *operands)
    inputs, _, output = form.replace(" ", "").partition("->")
    sizes: dict[str, Value] = {}
    for letters, operand in zip(inputs.split(","), operands, strict=False):
        if isinstance(operand, TensorValue) and operand.shape is not None and len(operand.shape) == len(letters):
            sizes.update(zip(letters, operand.shape, strict=True))
    return result(tuple(sizes.get(letter, UNKNOWN_SIZE) for letter in output), *operands)


_WORDS_OF_FACTORIES = """
zeros ones empty rand randn full arange linspace tensor eye randint as_tensor randperm Tensor logspace
from_numpy
"""


_FACTORIES = frozenset(_WORDS_OF_FACTORIES.split())


def _made(name: str, given: Arguments) -> Value:
    dtype = dtype_name(given.kwargs.get("dtype"))
    match name:
        case "full":
            return TensorValue(sizes_of([given.get(0, "size")]), dtype)
        case "arange":
            return _arange(given)
        case "linspace" | "logspace":
            return _linspace(name, given, dtype)
        case "tensor" | "as_tensor" | "from_numpy":
            return _literal(given, dtype)
        case "eye":
            rows = given.get(0, "n")
            return TensorValue((rows, given.get(1, "m", rows)), dtype)
        case "randint":
            size = next((one for one in given.args if isinstance(one, (tuple, list))), given.kwargs.get("size"))
            return TensorValue(sizes_of([size]), dtype if "dtype" in given.kwargs else "int64")
        case "randperm":
            return TensorValue(sizes_of(given.args[:1]), "int64")
        case _:
            sizes = given.args or [given.kwargs.get("size")]
            return TensorValue(None if given.is_open else sizes_of(sizes), dtype)


def _arange(given: Arguments) -> Value:
    numbers = [one for one in given.args if isinstance(one, (int, float))]
    if len(numbers) != len(given.args) or not numbers or not all(type(one) is int for one in numbers):
        return TensorValue((UNKNOWN_SIZE,), "")
    try:
        values = range(*(int(one) for one in numbers))
    except (TypeError, ValueError):
        return TensorValue((UNKNOWN_SIZE,), "")
    dtype = dtype_name(given.kwargs["dtype"]) if "dtype" in given.kwargs else "int64"
    return TensorValue((len(values),), dtype, data=tuple(values) if len(values) <= MOST_NUMBERS else None)


def _linspace(name: str, given: Arguments, dtype: str) -> Value:
    start, end, steps = (given.get(at, key) for at, key in enumerate(("start", "end", "steps")))
    if type(steps) is not int:
        return TensorValue((UNKNOWN_SIZE,), dtype)
    data = None
    if (
        isinstance(start, (int, float))
        and isinstance(end, (int, float))
        and 0 < steps <= MOST_NUMBERS
        and name == "linspace"
    ):
        data = tuple(start + (end - start) * at / max(steps - 1, 1) for at in range(steps))
    return TensorValue((steps,), dtype, data=data)


def _literal(given: Arguments, dtype: str) -> Value:
    shape: list[Value] = []
    value = given.get(0, "data")
    if isinstance(value, TensorValue):
        return value
    first = value
    while isinstance(first, (list, tuple)) and len(shape) < 8:
        shape.append(len(first))
        first = first[0] if first else 0.0
    if not isinstance(first, (int, float)):
        return TensorValue(None, dtype if "dtype" in given.kwargs else "")
    is_vector = len(shape) == 1 and isinstance(value, (list, tuple)) and len(value) <= MOST_NUMBERS
    data = tuple(value) if is_vector and isinstance(value, (list, tuple)) else (value,) if not shape else None
    if "dtype" not in given.kwargs:
        dtype = "bool" if isinstance(first, bool) else "int64" if isinstance(first, int) else "float32"
    return TensorValue(tuple(shape), dtype, data=data)
