"""Tensors by their shapes: what arithmetic, indexing and attributes give."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from .values import Kind, LibraryValue, NativeMethod, TensorValue, Unknown, Value

Shape = tuple[Value, ...]
MOST_NUMBERS = 4096
"""Longer vectors are not kept number by number, nor tensors taken apart into more parts."""
UNKNOWN_SIZE = Unknown("a size that is not known")


def result(shape: Shape | None, *of: Value, dtype: str = "") -> TensorValue:
    """A tensor computed from others: of the dtype of the first of them, unless one is given."""
    tensors = [one for one in of if isinstance(one, TensorValue)]
    sources = frozenset().union(*(one.sources for one in tensors))
    return TensorValue(shape, dtype or (tensors[0].dtype if tensors else ""), sources=sources)


def elementwise(left: Value, right: Value) -> Value:
    """The result of an operator on two operands, at least one of them a tensor."""
    shapes = [one.shape for one in (left, right) if isinstance(one, TensorValue)]
    if isinstance(left, (Unknown, list, tuple)) or isinstance(right, (Unknown, list, tuple)):
        # A scalar, most likely; a tensor of the same size, else.
        return result(shapes[0], left, right)
    return result(broadcast(shapes), left, right)


def broadcast(shapes: list[Shape | None]) -> Shape | None:
    """The shape that several broadcast to."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    axes = max((len(shape) for shape in known), default=0)
    return tuple(_one_size([shape[at - axes] for shape in known if len(shape) >= axes - at]) for at in range(axes))


def _one_size(sizes: list[Value]) -> Value:
    larger = [size for size in sizes if size != 1]
    known = [size for size in larger if type(size) is int]
    return known[0] if known else larger[0] if larger else 1


def matmul(left: Value, right: Value) -> Value:
    """`left @ right`."""
    if not isinstance(left, TensorValue) or not isinstance(right, TensorValue):
        return result(None, left, right)
    a, b = left.shape, right.shape
    if a is None or b is None or not a or not b:
        return result(None, left, right)
    if len(a) == 1 or len(b) == 1:
        return result((*a[:-1], *b[:-2], *(b[-1:] if len(b) > 1 else ())), left, right)
    batch = broadcast([a[:-2], b[:-2]])
    return result(None if batch is None else (*batch, a[-2], b[-1]), left, right)


def attribute(tensor: TensorValue, name: str) -> Value:
    """`tensor.name`."""
    shape = tensor.shape
    match name:
        case "shape":
            return Unknown("a shape that is not known") if shape is None else shape
        case "ndim":
            return Unknown("a shape that is not known") if shape is None else len(shape)
        case "dtype":
            return LibraryValue(f"torch.{tensor.dtype}") if tensor.dtype else Unknown("a dtype that is not known")
        case "data":
            return tensor
        case "T" | "mT" | "H":
            return result(None if shape is None else (*shape[:-2], *reversed(shape[-2:])), tensor)
        case "device" | "is_cuda" | "grad" | "requires_grad" | "layout" | "names":
            return Unknown(f"a tensor's {name}")
        case _:
            return NativeMethod(tensor, name)


def item(tensor: TensorValue, index: Value) -> Value:
    """`tensor[index]`."""
    if tensor.data is not None and type(index) is int and -len(tensor.data) <= index < len(tensor.data):
        return TensorValue((), tensor.dtype, data=(tensor.data[index],))
    if tensor.data is not None and isinstance(index, slice):
        data = tensor.data[index]
        return replace(tensor, shape=(len(data),), data=data, kind=Kind.PLAIN)
    if tensor.shape is None:
        return result(None, tensor)
    return result(_indexed(tensor.shape, index if isinstance(index, tuple) else (index,)), tensor)


def _indexed(shape: Shape, index: tuple[Value, ...]) -> Shape | None:
    taken = sum(1 for one in index if one is not None and one is not Ellipsis)
    if taken > len(shape):
        return None
    rest = list(shape)
    found: list[Value] = []
    for one in index:
        if one is None:
            found.append(1)
        elif one is Ellipsis:
            skipped = len(rest) - (taken - (len(shape) - len(rest)))
            found += [rest.pop(0) for _ in range(skipped)]
        elif type(one) is int:
            rest.pop(0)
        elif isinstance(one, slice):
            found.append(_sliced(rest.pop(0), one))
        elif isinstance(one, TensorValue) and one.shape is not None and one.dtype != "bool":
            rest.pop(0)
            found += one.shape
        elif isinstance(one, (list, tuple)):
            rest.pop(0)
            found.append(len(one))
        else:
            return None
    return (*found, *rest)


def _sliced(size: Value, index: slice) -> Value:
    if index == slice(None):
        return size
    if type(size) is not int or not all(
        part is None or type(part) is int for part in (index.start, index.stop, index.step)
    ):
        return UNKNOWN_SIZE
    try:
        return len(range(*index.indices(size)))
    except ValueError:
        return UNKNOWN_SIZE


def axis(value: Value, count: int) -> int | None:
    """An axis counted from the start; None where there is none or it is not known."""
    return value % count if type(value) is int and count and -count <= value < count else None


def sizes_of(given: list[Value]) -> Shape | None:
    """Sizes given as a sequence or one by one; None if their number is not known."""
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = list(given[0])
    if any(isinstance(one, (list, tuple)) for one in given):
        return None
    return tuple(one if type(one) is int else UNKNOWN_SIZE for one in given)


def reshaped(shape: Shape | None, wanted: Shape | None) -> Shape | None:
    """The wanted sizes, a single -1 among them worked out."""
    if wanted is None:
        return None
    unknown = [size for size in wanted if type(size) is not int]
    if -1 not in wanted:
        return wanted
    total = product(shape) if shape is not None else None
    rest = prod(size for size in wanted if isinstance(size, int) and size != -1)
    if unknown or type(total) is not int:
        left = UNKNOWN_SIZE if shape is None else _left_over(shape, wanted)
    else:
        left = total // rest if rest else UNKNOWN_SIZE
    return tuple(left if size == -1 else size for size in wanted)


def _left_over(shape: Shape, wanted: Shape) -> Value:
    """The size that -1 stands for where sizes that are not known stay what they are."""
    rest, known = list(shape), 1
    for size in wanted:
        if size == -1:
            continue
        same = next((at for at, one in enumerate(rest) if one is size and one is not UNKNOWN_SIZE), None)
        if same is not None:
            rest.pop(same)
        elif type(size) is int:
            known *= size
        else:
            return UNKNOWN_SIZE
    total = product(tuple(rest))
    return total // known if type(total) is int and known else UNKNOWN_SIZE


def product(sizes: Shape) -> Value:
    """The product of sizes."""
    numbers = [size for size in sizes if isinstance(size, int)]
    return prod(numbers) if len(numbers) == len(sizes) else UNKNOWN_SIZE
