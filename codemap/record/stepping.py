"""A light line tracer: at which moments the program's own code moved on to which line.

It is what tells the line of operators that have no Python event, such as `a + b`. It only looks at the program's own
files, and leaves the place to a debugger or a coverage tool that is there already.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .own import OwnFiles

Moves = list[tuple[int, str, int]]
"""(Unix time in ns, file as the code object names it, line), in order of time; line 0: outside the own code."""

_TOOL_NAME = "torchtraceap"


class LineTracer:
    """Traces the thread that starts it."""

    def __init__(self, files: OwnFiles) -> None:
        """`files` says which code is looked at."""
        self.moves: Moves = []
        self._files = files
        self._stop: Callable[[], None] | None = None

    def start(self) -> str:
        """Begin; a sentence why that cannot be, or "". The frames that are running are traced from here on."""
        if sys.gettrace() is not None:
            return "a debugger or a coverage tool traces the program: operators without a Python event have no line"
        if sys.version_info >= (3, 12):
            return self._monitor()
        return self._trace()

    def stop(self) -> None:
        """End. Nothing is left behind."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _move(self, frame: FrameType | None) -> None:
        """Where the program is once the frame below `frame` runs on."""
        is_own = self._files.is_own
        while frame is not None and not is_own(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            self.moves.append((time.time_ns(), "", 0))
        else:
            self.moves.append((time.time_ns(), frame.f_code.co_filename, frame.f_lineno or 0))

    def _trace(self) -> str:
        is_own, add, now = self._files.is_own, self.moves.append, time.time_ns

        def on_call(frame: FrameType, event: str, _: Any) -> Any:
            return in_frame if is_own(frame.f_code.co_filename) else None

        def in_frame(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                add((now(), frame.f_code.co_filename, frame.f_lineno))
            elif event == "return":
                self._move(frame.f_back)
            return in_frame

        running = [frame for frame in _frames(sys._getframe(1)) if is_own(frame.f_code.co_filename)]
        before = [(frame, frame.f_trace) for frame in running]
        for frame in running:
            frame.f_trace = in_frame
        sys.settrace(on_call)
        self._move(running[0] if running else None)

        def stop() -> None:
            if sys.gettrace() is on_call:
                sys.settrace(None)
            for frame, trace in before:
                frame.f_trace = trace
                release_locals(frame)

        self._stop = stop
        return ""

    def _monitor(self) -> str:
        monitoring: Any = sys.monitoring  # pyright: ignore[reportAttributeAccessIssue]  Python 3.12
        tool = next((i for i in (4, 3, 5) if monitoring.get_tool(i) is None), None)
        if tool is None:
            return "other tools hold all places for watching lines: operators without a Python event have no line"
        is_own, add, now = self._files.is_own, self.moves.append, time.time_ns

        def on_line(code: CodeType, line: int) -> Any:
            if not is_own(code.co_filename):
                return monitoring.DISABLE
            add((now(), code.co_filename, line))
            return None

        def on_return(code: CodeType, *_: Any) -> Any:
            if not is_own(code.co_filename):
                return monitoring.DISABLE
            self._move(sys._getframe(1).f_back)
            return None

        def on_unwind(code: CodeType, *_: Any) -> Any:
            if is_own(code.co_filename):  # this event cannot be switched off for one place
                self._move(sys._getframe(1).f_back)

        events = monitoring.events
        monitoring.use_tool_id(tool, _TOOL_NAME)
        monitoring.register_callback(tool, events.LINE, on_line)
        for event in (events.PY_RETURN, events.PY_YIELD):
            monitoring.register_callback(tool, event, on_return)
        monitoring.register_callback(tool, events.PY_UNWIND, on_unwind)
        monitoring.set_events(tool, events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_UNWIND)
        self._move(sys._getframe(1))

        def stop() -> None:
            monitoring.set_events(tool, 0)
            for event in (events.LINE, events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)

        self._stop = stop
        return ""


def release_locals(frame: FrameType) -> None:
    """Let go of what a look at a running function's variables keeps alive: before Python 3.13 that is a copy."""
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        frame.f_locals.clear()


def _frames(frame: FrameType | None) -> list[FrameType]:
    """The frame and those that called it, innermost first."""
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found
