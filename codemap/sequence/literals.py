"""Numbers that stand in a call, by the argument of the operator that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..building.values import TensorValue, Value
from .program import Inputs, Sizes

_SPREAD = frozenset(["permute", "view", "reshape", "expand", "repeat", "tile", "flip"])
"""Take their numbers one by one, or as one sequence."""
_OTHERWISE = frozenset(
    [
        "arange",
        "zeros",
        "ones",
        "full",
        "empty",
        "rand",
        "randn",
        "randint",
        "linspace",
        "eye",
        "tensor",
        "new_zeros",
        "new_ones",
        "new_full",
        "normalize",
        "interpolate",
        "to",
        "type",
        "norm",
        "pad",
        "where",
        "roll",
        "randperm",
        "max",
        "min",
        "std",
        "var",
        "from_numpy",
    ]
)
"""Their operators take arguments in another order, or what they take depends."""
_DIM_AT: Mapping[str, int] = {
    "chunk": 2,
    "split": 2,
    "topk": 2,
    "repeat_interleave": 2,
    "tensor_split": 2,
    "diff": 2,
    "logsumexp": 1,
    "cosine_similarity": 2,
}
_KEYWORDS: Mapping[str, int] = {
    "keepdim": 2,
    "dim": 1,
    "start_dim": 1,
    "end_dim": 2,
    "chunks": 1,
    "k": 1,
    "diagonal": 1,
}
_MOST_GIVEN = 8


def literal_inputs(name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Inputs | None:
    """What is known of the arguments of the operator `name`; `args` with the tensor itself first."""
    hints = shape_hints(*args[:1])
    values = () if name in _OTHERWISE else tuple(_values(name, args, kwargs))
    return Inputs(values=values, hints=hints) if values or hints else None


def shape_hints(*args: Value) -> Sizes:
    """What is known of the sizes of those arguments that are tensors, by their numbers."""
    tensors = [(at, value) for at, value in enumerate(args) if isinstance(value, TensorValue)]
    return tuple((at, known_sizes(value.shape)) for at, value in tensors if value.shape)


def known_sizes(shape: Sequence[Value]) -> tuple[int | None, ...]:
    """The sizes of a shape, None for those that are not known."""
    return tuple(size if type(size) is int else None for size in shape)


def _values(name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> list[tuple[int, object]]:
    if name in _SPREAD:
        numbers = args[1:]
        if len(numbers) == 1 and isinstance(numbers[0], (list, tuple)):
            numbers = list(numbers[0])
        if not numbers or not any(type(one) is int for one in numbers):
            return []
        return [(1, known_sizes(numbers))]
    found: list[tuple[int, object]] = []
    for at, value in enumerate(args[:_MOST_GIVEN]):
        if at and (number := plain(value)) is not None:
            found.append((at, number))
    for key, value in kwargs.items():
        at = _DIM_AT.get(name, 1) if key == "dim" else _KEYWORDS.get(key)
        if at is not None and (number := plain(value)) is not None:
            found.append((at, number))
    return found


def plain(value: Value) -> object:
    """A number or some numbers; None for what is not known, or no number."""
    if isinstance(value, (list, tuple)):
        return tuple(value) if value and all(type(item) is int for item in value) else None
    return value if isinstance(value, (int, float)) else None
