"""The line that a program is on, marked in the profiler's own record: the truth that places are compared with.

A trace function puts one short range into the recording whenever another line of the program's own files is reached,
and whenever one of its frames returns. The range carries a number; `marks` says which function and line it stands for.
The interpreter switches its profiling hook off inside a trace function, so nothing else of the clock is recorded, and
the recorder's own time stamps order marks and operators.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from torch._C._profiler import _RecordFunctionFast

PREFIX = "the clock's mark "


class Mark(msgspec.Struct, frozen=True):
    """A line of a program, and the function that it is executed in."""

    path: str
    """Relative to the program's folder."""
    function: str
    """Qualified as the interpreter does it; "" outside the program."""
    line: int


class LineClock:
    """Marks lines while `is_on`. Install it before the program starts: frames that run already are not seen."""

    def __init__(self, folder: Path) -> None:
        self.is_on = False
        self._folder = f"{folder}/"
        self._numbers: dict[Mark, int] = {}

    @property
    def marks(self) -> list[Mark]:
        """What each number stands for."""
        return list(self._numbers)

    def install(self) -> None:
        """Watch this thread from here on."""
        sys.settrace(self._enter)

    def remove(self) -> None:
        """Watch no longer."""
        sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._within if frame.f_code.co_filename.startswith(self._folder) else None

    def _within(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self.is_on and event == "line":
            self._set(frame)
        elif self.is_on and event == "return":
            self._set(self._caller(frame))
        return self._within

    def _caller(self, frame: FrameType) -> FrameType | None:
        """The frame of the program that goes on when `frame` returns."""
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(self._folder):
            caller = caller.f_back
        return caller

    def _set(self, frame: FrameType | None) -> None:
        if frame is None:
            mark = Mark("", "", 0)
        else:
            code = frame.f_code
            mark = Mark(code.co_filename.removeprefix(self._folder), _qualified(code), frame.f_lineno or 0)
        number = self._numbers.setdefault(mark, len(self._numbers))
        with _RecordFunctionFast(f"{PREFIX}{number}"):
            pass


def _qualified(code: Any) -> str:
    return getattr(code, "co_qualname", code.co_name)
