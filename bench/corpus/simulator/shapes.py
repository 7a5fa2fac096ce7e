"""The inputs of operator calls, with the batch axis found and multiplied.

The batch of a recording is a prime, so that an axis whose length is a multiple of it is the batch axis (or batch and
tokens flattened together), unless the tensor is a parameter or has the shape of one, as its gradient and its casts do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType

from torchtraceap.analyzer.timeline.op_inputs import ELEMENT_BYTES
from torchtraceap.analyzer.trace.model import Dims

from .document import Args, Event

_ANYTHING = msgspec.json.Decoder()

PARAMETERS_OF = {
    "aten::conv1d": (1, 2),
    "aten::conv2d": (1, 2),
    "aten::conv3d": (1, 2),
    "aten::_convolution": (1, 2),
    "aten::linear": (1, 2),
    "aten::batch_norm": (1, 2, 3, 4),
    "aten::layer_norm": (2, 3),
    "aten::group_norm": (2, 3),
    "aten::embedding": (0,),
    "torch::autograd::AccumulateGrad": (0,),
}
"""The arguments of operators that are parameters."""
_SIZES_IN_TEXT = frozenset(
    f"aten::{name}"
    for name in (
        "view",
        "reshape",
        "expand",
        "empty",
        "zeros",
        "ones",
        "new_zeros",
        "new_empty",
        "_unsafe_view",
        "randn",
    )
)
_PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::addmm_": 1}
"""Matrix products, and their first factor's argument."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Inputs of one operator call, after multiplication. Lists run over arguments."""

    dims: tuple[Dims, ...]
    """Sizes of tensor arguments; () for others and for lists of tensors."""
    strides: tuple[Dims, ...]
    types: tuple[str, ...]
    concrete: tuple[str, ...]
    lists: tuple[tuple[Dims, ...], ...]
    """Sizes of the tensors in list arguments; () for others."""
    written_dims: Raw | UnsetType
    written_strides: Raw | UnsetType
    written_types: Raw | UnsetType
    written_concrete: Raw | UnsetType

    def shape(self, argument: int) -> Dims:
        """Sizes of a tensor argument; () when it is none."""
        return self.dims[argument] if argument < len(self.dims) else ()

    def stride(self, argument: int) -> Dims:
        """Strides of a tensor argument in elements; () when it is none."""
        return self.strides[argument] if argument < len(self.strides) else ()

    def type(self, argument: int) -> str:
        """Type of an argument by its name in the profiler; "" when there is none."""
        return self.types[argument] if argument < len(self.types) else ""

    def value(self, argument: int) -> str:
        """Text of an argument that is no tensor; "" when there is none."""
        return self.concrete[argument] if argument < len(self.concrete) else ""

    def element_bytes(self, argument: int) -> int:
        """Bytes of one element of an argument."""
        return ELEMENT_BYTES.get(self.type(argument), 4)


NO_CALL = Call((), (), (), (), (), UNSET, UNSET, UNSET, UNSET)


class Calls:
    """Interned calls: one `Call` for all operators that had the same inputs."""

    def __init__(self, batch_size: int, multiplier: int, parameters: frozenset[Dims], half: str) -> None:
        self._batch = batch_size if multiplier > 1 else 0
        self._times = multiplier
        self._parameters = parameters
        self._half = half
        self._known: dict[tuple[bytes, bytes, bytes, bytes, int], Call] = {}

    def of(self, name: str, args: Args) -> Call:
        """The call of an operator with these recorded arguments."""
        if isinstance(args.dims, UnsetType):
            return NO_CALL
        kind = _PRODUCTS.get(name, -2 if name in _SIZES_IN_TEXT else -1)
        key = (bytes(args.dims), _text(args.strides), _text(args.types), _text(args.concrete), kind)
        call = self._known.get(key)
        if call is None:
            call = self._known[key] = self._decode(key)
        return call

    def _decode(self, key: tuple[bytes, bytes, bytes, bytes, int]) -> Call:
        dims, strides, types, concrete = (_ANYTHING.decode(text) if text else [] for text in key[:4])
        kind = key[4]
        types = [self._half if name == "c10::BFloat16" and self._half else name for name in types]
        strides = strides or [[] for _ in dims]
        if self._batch:
            self._multiply(dims, strides, kind)
            if kind == -2:
                concrete = [self._multiplied_text(text) for text in concrete]
        is_list = [bool(sizes) and isinstance(sizes[0], list) for sizes in dims]
        return Call(
            dims=tuple(() if nested else tuple(sizes) for sizes, nested in zip(dims, is_list, strict=True)),
            strides=tuple(() if step and isinstance(step[0], list) else tuple(step) for step in strides),
            types=tuple(types),
            concrete=tuple(concrete),
            lists=tuple(
                tuple(tuple(sizes) for sizes in many) if nested else ()
                for many, nested in zip(dims, is_list, strict=True)
            ),
            written_dims=_raw(dims),
            written_strides=_raw(strides),
            written_types=_raw(types),
            written_concrete=_raw(concrete) if concrete else UNSET,
        )

    def _multiply(self, dims: list, strides: list, kind: int) -> None:
        """Multiply the batch axis of every tensor, in place."""
        if kind >= 0 and self._multiply_product(dims, strides, kind):
            return
        for argument, sizes in enumerate(dims):
            if sizes and isinstance(sizes[0], list):
                for one, steps in zip(sizes, strides[argument] or [[]] * len(sizes), strict=False):
                    self._multiply_axis(one, steps, self.batch_axis(one))
            else:
                self._multiply_axis(sizes, strides[argument], self.batch_axis(sizes))

    def _multiply_product(self, dims: list, strides: list, first: int) -> bool:
        """A product's batch is the inner axis where the second factor is an activation, as in a weight's gradient."""
        left, right = dims[first], dims[first + 1]
        if len(left) != 2 or len(right) != 2 or right[0] % self._batch or self._is_parameter(right):
            return False
        self._multiply_axis(left, strides[first], 1)
        self._multiply_axis(right, strides[first + 1], 0)
        return True

    def batch_axis(self, sizes: list[int]) -> int:
        """The axis that holds the batch; -1 if there is none."""
        if not self._batch or not sizes or self._is_parameter(sizes):
            return -1
        if sizes[0] and sizes[0] % self._batch == 0:
            return 0
        return 1 if len(sizes) > 2 and sizes[1] == self._batch else -1

    def bytes_factor(self, size_bytes: int, element_bytes: int = 2) -> int:
        """By how much an allocation grows: those that the batch divides do."""
        return self._times if self._batch and size_bytes % (self._batch * element_bytes) == 0 else 1

    def _is_parameter(self, sizes: list[int]) -> bool:
        return tuple(sizes) in self._parameters

    def _multiply_axis(self, sizes: list[int], steps: list[int], axis: int) -> None:
        if axis < 0:
            return
        if axis < len(steps):
            inner = steps[axis] * sizes[axis]
            for other, step in enumerate(steps):
                if other != axis and inner and step >= inner:
                    steps[other] = step * self._times
        sizes[axis] *= self._times

    def _multiplied_text(self, text: str) -> str:
        if not text.startswith("["):
            return text
        try:
            sizes = [int(word) for word in text[1:-1].split(",") if word]
        except ValueError:
            return text
        self._multiply_axis(sizes, [], self.batch_axis(sizes))
        return str(sizes)


def parameter_shapes(events: Iterable[Event]) -> frozenset[Dims]:
    """The shapes of all parameters that operators name as such, and of their transposes."""
    seen: set[tuple[str, bytes]] = set()
    shapes: set[Dims] = set()
    for event in events:
        arguments = PARAMETERS_OF.get(event.name)
        if arguments is None or isinstance(event.args, UnsetType) or isinstance(event.args.dims, UnsetType):
            continue
        key = (event.name, bytes(event.args.dims))
        if key in seen:
            continue
        seen.add(key)
        dims = _ANYTHING.decode(event.args.dims)
        for argument in arguments:
            sizes = tuple(dims[argument]) if argument < len(dims) else ()
            if sizes:
                shapes |= {sizes, sizes[::-1]}
    return frozenset(shapes)


def is_channels_last(sizes: Dims, strides: Dims) -> bool:
    """Whether a tensor's channels are the innermost axis in memory."""
    return len(sizes) >= 4 and len(strides) == len(sizes) and strides[1] == 1 and sizes[1] > 1


def numbers(text: str) -> Dims:
    """The numbers of a list that the profiler wrote as text; () where it is none."""
    return tuple(int(word) for word in text.strip("[]").split(",") if word.strip()) if text.startswith("[") else ()


def _text(raw: Raw | UnsetType) -> bytes:
    return b"" if isinstance(raw, UnsetType) else bytes(raw)


def _raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
