"""Tables that give every distinct value one number."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np

from .events import NOTHING, Args, Scalar
from .model import NONE, Dims, Int32Array, OpInputs, Thread

K = TypeVar("K", bound=Hashable)

_PARTS = 4
_DECIMAL = re.compile(r"^-?\d{1,18}$")


class Interner(dict[K, int], Generic[K]):
    """`table[value]` is the number of `value`, given out in order of first use; `none`, if given, counts as NONE."""

    def __init__(self, none: K | None = None) -> None:
        super().__init__()
        self._none = none
        self._reserved = none is not None
        if none is not None:
            self[none] = NONE

    def __missing__(self, value: K) -> int:
        number = self[value] = len(self) - self._reserved
        return number

    def numbers(self, values: Iterable[K]) -> Int32Array:
        """The number of each of `values`."""
        return np.fromiter(map(self.__getitem__, values), dtype=np.int32)

    def values_by_number(self) -> tuple[K, ...]:
        """The distinct values; the one with number i at index i."""
        return tuple(self)[self._reserved :]


class ThreadTable:
    """Numbers (pid, tid) pairs; a thread written once as `7` and once as `"7"` is one."""

    def __init__(self) -> None:
        self._number: Interner[tuple[int | str, int | str]] = Interner()
        self._spelled: dict[tuple[Scalar, Scalar], int] = _Spellings(self._number)
        self._process_names: dict[int | str, str] = {}
        self._thread_names: dict[tuple[int | str, int | str], str] = {}

    def numbers(self, pairs: Sequence[tuple[Scalar, Scalar]]) -> Int32Array:
        """The number of the thread of each (pid, tid)."""
        return np.fromiter(map(self._spelled.__getitem__, pairs), dtype=np.int32, count=len(pairs))

    def name_process(self, pid: Scalar, name: str) -> None:
        """Record a process's name."""
        self._process_names[_identifier(pid)] = name

    def name_thread(self, pid: Scalar, tid: Scalar, name: str) -> None:
        """Record a thread's name."""
        self._thread_names[_identifier(pid), _identifier(tid)] = name

    def all(self) -> tuple[Thread, ...]:
        """The threads by number, with their names."""
        return tuple(
            Thread(pid, tid, self._process_names.get(pid, ""), self._thread_names.get((pid, tid), ""))
            for pid, tid in self._number.values_by_number()
        )


class _Spellings(dict[tuple[Scalar, Scalar], int]):
    def __init__(self, number: Interner[tuple[int | str, int | str]]) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, spelled: tuple[Scalar, Scalar]) -> int:
        pid, tid = spelled
        number = self[spelled] = self._number[_identifier(pid), _identifier(tid)]
        return number


def _identifier(value: Scalar) -> int | str:
    """A process or thread id; decimal strings and whole floats as integers."""
    if isinstance(value, str):
        return int(value) if _DECIMAL.match(value) else value
    if value is None:
        return ""
    return int(value) if value == value // 1 else str(value)


class InternedInputs:
    """Operator inputs as JSON text, each distinct set stored once and decoded when asked for.

    Costs, rules and features ask for the same sets again and again, so the first ones asked for are kept.
    """

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        self._texts = texts
        self._decoded: dict[int, OpInputs] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> OpInputs:
        found = self._decoded.get(index)
        if found is None:
            found = self._decode(index)
            if len(self._decoded) < _KEPT:
                self._decoded[index] = found
        return found

    def _decode(self, index: int) -> OpInputs:
        dims, strides, types, concrete = (_decode_list(text) for text in self._texts[index].split(PARTING))
        return OpInputs(
            tuple(_dims(item) for item in dims),
            tuple(_dims(item) for item in strides),
            tuple(_text(item) for item in types),
            tuple(_text(item) for item in concrete),
        )

    def naming(self, type_name: str) -> list[int]:
        """The entries in whose text a type's name stands, without decoding any."""
        word = f'"{type_name}"'.encode()
        return [index for index, text in enumerate(self._texts) if word in text]


_KEPT = 8192
"""Some kilobytes each; traces of varying sizes have hundreds of thousands."""

PARTING = b"\x00"
"""Parts the four lists of one entry; JSON text never holds it."""


def inputs_texts(args: Sequence[Args]) -> Iterable[bytes] | None:
    """The recorded inputs of each event as one text to intern, `NO_INPUTS` for none; None if no event has any."""
    lists = (
        [arg.dims for arg in args],
        [arg.dims_lower for arg in args],
        [arg.strides for arg in args],
        [arg.types for arg in args],
        [arg.concrete for arg in args],
    )
    if all(texts.count(NOTHING) == len(args) for texts in lists):
        return None
    dims, dims_lower, *others = lists
    if dims_lower.count(NOTHING) != len(args):
        dims = [text or lower for text, lower in zip(dims, dims_lower, strict=True)]
    return map(PARTING.join, zip(dims, *others, strict=True))


NO_INPUTS = PARTING * (_PARTS - 1)


def stack_text(text: bytes) -> str:
    """The `Call stack` of an event from its JSON text; "" if it is no string."""
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _decode_list(text: bytes) -> list[object]:
    try:
        return msgspec.json.decode(text, type=list[object]) if text else []
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return []


def _dims(item: object) -> Dims | tuple[Dims, ...]:
    if not isinstance(item, list):
        return ()
    if all(isinstance(size, int) for size in item):
        return tuple(item)
    return tuple(_sizes(tensor) for tensor in item)


def _sizes(item: object) -> Dims:
    return tuple(size for size in item if isinstance(size, int)) if isinstance(item, list) else ()


def _text(item: object) -> str:
    return item if isinstance(item, str) else msgspec.json.encode(item).decode()
