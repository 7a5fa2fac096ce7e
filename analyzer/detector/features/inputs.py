"""Facts of recorded inputs, worked out once for each distinct set of inputs and looked up for each call."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from math import prod
from typing import NamedTuple

import numpy as np

from ...timeline.op_inputs import tensors
from ...trace.model import Dims, FloatArray, IntArray, OpInputs, Trace


class Kind(IntEnum):
    """Types of elements, told apart as far as speed does."""

    UNKNOWN = 0
    FP32 = 1
    HALF = 2
    """fp16 or bf16."""
    FP64 = 3
    WIDE_INT = 4
    """32 and 64 bits: indices, labels."""
    BYTE = 5
    """8 bits, signed or not: images, quantised values, fp8."""
    BOOL = 6
    COMPLEX = 7


_KINDS = {
    "float": Kind.FP32,
    "double": Kind.FP64,
    "c10::Half": Kind.HALF,
    "c10::BFloat16": Kind.HALF,
    "int": Kind.WIDE_INT,
    "long": Kind.WIDE_INT,
    "long int": Kind.WIDE_INT,
    "short": Kind.WIDE_INT,
    "short int": Kind.WIDE_INT,
    "unsigned char": Kind.BYTE,
    "signed char": Kind.BYTE,
    "c10::qint8": Kind.BYTE,
    "c10::quint8": Kind.BYTE,
    "c10::Float8_e4m3fn": Kind.BYTE,
    "c10::Float8_e5m2": Kind.BYTE,
    "bool": Kind.BOOL,
    "c10::complex<float>": Kind.COMPLEX,
    "c10::complex<double>": Kind.COMPLEX,
}


class Memory(IntEnum):
    """How a tensor of images or volumes lies in memory."""

    UNKNOWN = 0
    CHANNELS_FIRST = 1
    CHANNELS_LAST = 2
    OTHER = 3
    """Neither, or with holes."""


class Entry(NamedTuple):
    """Facts of one set of inputs."""

    kind: int
    """`Kind` of the first tensor."""
    elements: float
    """Of the largest tensor."""
    first_elements: float
    """Of the first tensor."""
    axes: int
    """Of the first tensor."""
    lead: int
    """Size of the first axis of the first tensor."""
    memory: int
    """`Memory` of the first tensor."""
    is_dense: bool
    """Whether the first tensor is contiguous in the order of its axes; False where strides are unknown."""
    has_double: bool
    """Whether a tensor of more than one element is fp64."""
    is_mixed: bool
    """Whether floating tensors of different widths meet."""
    tensors: int


_NOTHING = Entry(Kind.UNKNOWN, 0.0, 0.0, 0, 0, Memory.UNKNOWN, False, False, False, 0)


class InputFacts:
    """`Entry` by call, in columns: `facts.column("axes", rows)`."""

    def __init__(self, trace: Trace, decode: Callable[[int], OpInputs]) -> None:
        self._trace = trace
        self._decode = decode
        self._table = np.zeros((len(trace.input_table) + 1, len(Entry._fields)))
        self._is_read = np.zeros(len(self._table), dtype=np.bool_)

    def column(self, name: str, rows: IntArray) -> FloatArray:
        """One fact of the inputs of each of `rows`."""
        places = self._trace.inputs[rows] + 1
        for place in np.flatnonzero((np.bincount(places, minlength=len(self._table)) > 0) & ~self._is_read).tolist():
            self._table[place] = _entry(self._decode(place - 1))
            self._is_read[place] = True
        return self._table[places, Entry._fields.index(name)]


def kind_of(type_name: str) -> Kind:
    """The kind of a recorded element type."""
    return _KINDS.get(type_name, Kind.UNKNOWN)


def is_contiguous(dims: Dims, strides: Dims) -> bool:
    """Whether a tensor is dense in the order of its axes; False where its strides are unknown."""
    if not dims or len(dims) != len(strides):
        return False
    expected = 1
    for size, stride in zip(reversed(dims), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def memory_of(dims: Dims, strides: Dims) -> Memory:
    """How a batch of images (4 axes) or volumes (5) lies in memory; UNKNOWN where that cannot be told."""
    if len(dims) not in (4, 5) or len(strides) != len(dims) or dims[1] == 1 or max(dims[2:]) == 1:
        return Memory.UNKNOWN
    if is_contiguous(dims, strides):
        return Memory.CHANNELS_FIRST
    order = (0, *range(2, len(dims)), 1)
    is_last = is_contiguous(tuple(dims[i] for i in order), tuple(strides[i] for i in order))
    return Memory.CHANNELS_LAST if is_last else Memory.OTHER


def _entry(inputs: OpInputs) -> Entry:
    found = tensors(inputs)
    if not found:
        return _NOTHING
    sizes = [(prod(dims), kind_of(inputs.dtype(argument))) for argument, dims in found]
    argument, dims = found[0]
    strides = inputs.stride(argument)
    widths = {kind for size, kind in sizes if kind in (Kind.FP32, Kind.HALF, Kind.FP64) and size > 1}
    return Entry(
        kind_of(inputs.dtype(argument)),
        float(max(size for size, _ in sizes)),
        float(sizes[0][0]),
        len(dims),
        dims[0] if dims else 1,
        memory_of(dims, strides),
        is_contiguous(dims, strides),
        any(kind == Kind.FP64 and size > 1 for size, kind in sizes),
        len(widths) > 1,
        len(found),
    )
