"""Reading what the profiler recorded of an operator's inputs: sizes, element widths, and numbers written as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np

from ..trace.interning import InternedInputs
from ..trace.model import Dims, IntArray, OpInputs, Trace

T = TypeVar("T")

ELEMENT_BYTES = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "int": 4,
    "long": 8,
    "long int": 8,
    "short": 2,
    "short int": 2,
    "unsigned char": 1,
    "signed char": 1,
    "bool": 1,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::qint8": 1,
    "c10::quint8": 1,
}
"""Bytes of one element, by the type names of the profiler."""

_UNKNOWN_ELEMENT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one call."""

    flops: float
    bytes: float
    heavy: bool = False
    """True for matrix work (GEMM, convolution, attention)."""


def of_each(trace: Trace, rows: IntArray, fact: Callable[[OpInputs], T]) -> list[T]:
    """A fact about the recorded inputs of each of `rows`; every distinct set of inputs is decoded once."""
    used = trace.inputs[rows].tolist()
    known = {index: fact(trace.input_table[index] if index >= 0 else OpInputs()) for index in set(used)}
    return [known[index] for index in used]


def tensors(inputs: OpInputs) -> list[tuple[int, Dims]]:
    """(argument, sizes) of every tensor, those in lists included."""
    found: list[tuple[int, Dims]] = []
    for argument, dims in enumerate(inputs.dims):
        nested = [sizes for sizes in dims if isinstance(sizes, tuple)]
        if nested:
            found.extend((argument, sizes) for sizes in nested)
        elif dims:
            found.append((argument, inputs.shape(argument)))
    return found


def tensor_bytes(inputs: OpInputs) -> float:
    """Bytes of all tensor arguments together."""
    return float(sum(prod(dims) * element_bytes(inputs, argument) for argument, dims in tensors(inputs)))


def element_bytes(inputs: OpInputs, argument: int) -> int:
    """Bytes of one element of a tensor argument; fp32 is assumed where no type was recorded."""
    return ELEMENT_BYTES.get(inputs.dtype(argument), _UNKNOWN_ELEMENT_BYTES)


def numbers(inputs: OpInputs, argument: int) -> Dims:
    """A list-of-int argument from its recorded text (`"[1, 1]"`); () when not recorded or symbolic."""
    text = inputs.value(argument) if argument >= 0 else ""
    if not text.startswith("["):
        return ()
    try:
        return tuple(int(word) for word in text[1:].removesuffix("]").split(",") if word)
    except ValueError:
        return ()


def flags(text: str) -> tuple[bool, ...]:
    """A list-of-bool argument from its recorded text (`"[True, True, False]"`)."""
    words = [word.strip() for word in text.strip("[]").split(",")]
    return tuple(word in ("True", "1", "true") for word in words) if text.startswith("[") else ()


def taking(trace: Trace, rows: IntArray, type_name: str) -> IntArray:
    """Those of `rows` that have an argument of this type, by its name in the profiler; cheap where few have."""
    table = trace.input_table
    if isinstance(table, InternedInputs):
        entries = table.naming(type_name)
    else:
        entries = [index for index in range(len(table)) if type_name in table[index].types]
    named = np.zeros(len(table) + 1, dtype=np.bool_)  # the last one stands for rows without inputs
    named[entries] = True
    return rows[named[trace.inputs[rows]]]


def holds_type(inputs: OpInputs, type_name: str, fewest: int = 2) -> bool:
    """Whether a tensor argument has this type and at least `fewest` elements. Of lists no types are recorded.

    The default leaves out the numbers that Python hands in: they stand as tensors without dimensions.
    """
    return any(
        kind == type_name and prod(inputs.shape(argument)) >= fewest for argument, kind in enumerate(inputs.types)
    )
