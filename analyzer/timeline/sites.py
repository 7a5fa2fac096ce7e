"""Groups events by the place in the program that caused them, as far as the trace alone shows it.

Frames in a trace carry no executed line, so a site is a function and what it called, not a line; `codemap.place`
splits and joins sites by line once it has the source.
"""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import NONE, Category, IntArray
from .model import Timeline

Site = tuple[str, ...]

_LIBRARY_FRAME = re.compile(
    r"<|nn\.Module: |torch/|.*-packages/torch/|(.*/)?(contextlib|functools|threading|_contextlib)\.py\("
)
_ADDRESS = re.compile(r" object at 0x[0-9a-fA-F]+")
_LINE = re.compile(r"\(\d+\)(?=: )")
_MODULE_NUMBER = re.compile(r"^(nn\.Module: .*?)_\d+$")


def group_by_site(timeline: Timeline, rows: IntArray) -> list[IntArray]:
    """`rows` (host events) parted by site, each group in the given order, groups in order of their first row."""
    finder = SiteFinder(timeline)
    groups: dict[Site, list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(finder.site(row), []).append(row)
    return [np.array(group, dtype=np.int64) for group in groups.values()]


class SiteFinder:
    """Names the site of host events; remembers what it found for each frame."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._of_frame: dict[int, Site] = {}
        self._function_of_frame: dict[int, int] = {}

    def site(self, row: int) -> Site:
        """What the trace shows of the place that caused `row`; equal for two executions of one source line.

        With Python frames: the innermost frame of the user's own code and the library frames below it. With a
        recorded stack: the same from the stack. With neither: the annotations and operators around the event.
        """
        frame = int(self._timeline.tree.python[row])
        if frame != NONE:
            return self._frame_site(frame)
        stack = self._timeline.trace.stack_of(row)
        return _stack_site(stack) if stack else self._enclosing_site(row)

    def function(self, row: int) -> int | str:
        """The innermost function of the user's own code round `row`: one execution of it, as the row of its frame.

        Where only a recorded stack tells, the function's file and name; NONE if nothing does.
        """
        trace, tree = self._timeline.trace, self._timeline.tree
        frame = int(tree.python[row])
        if frame == NONE:
            stack = trace.stack_of(row)
            return _LINE.sub("", _stack_site(stack)[0]) if stack else NONE
        if (known := self._function_of_frame.get(frame)) is not None:
            return known
        function = frame
        while function != NONE and is_library_frame(trace.name_of(function)):
            outer = int(tree.parent[function])
            function = int(tree.python[outer]) if outer != NONE else NONE
        self._function_of_frame[frame] = function
        return function

    def _frame_site(self, frame: int) -> Site:
        known = self._of_frame.get(frame)
        if known is not None:
            return known
        trace, tree = self._timeline.trace, self._timeline.tree
        names: list[str] = []
        current = frame
        while current != NONE:
            name = without_identity(trace.name_of(current))
            names.append(name)
            if not is_library_frame(name):
                break
            outer = int(tree.parent[current])
            current = int(tree.python[outer]) if outer != NONE else NONE
        site = tuple(reversed(names))
        self._of_frame[frame] = site
        return site

    def _enclosing_site(self, row: int) -> Site:
        trace, tree = self._timeline.trace, self._timeline.tree
        names = [trace.name_of(row)]
        for outer in tree.ancestors(row):
            if trace.cat[outer] == Category.CPU_OP or outer == tree.annotation[row]:
                names.append(trace.name_of(outer))
        return tuple(reversed(names))


def is_library_frame(name: str) -> bool:
    """Whether a Python frame is torch's, the interpreter's or a module event: not where a user would fix anything."""
    return _LIBRARY_FRAME.match(name) is not None


def without_identity(name: str) -> str:
    """A frame's name less what differs between executions: object addresses, numbers of module instances."""
    return _MODULE_NUMBER.sub(r"\1", _ADDRESS.sub("", name))


def _stack_site(stack: str) -> Site:
    """Innermost user frame and the library frames below it; ("",) for a stack without frames."""
    below: list[str] = []
    for frame in filter(None, (part.strip() for part in stack.split(";"))):
        below.append(without_identity(frame))
        if not is_library_frame(frame):
            break
    return tuple(reversed(below)) or ("",)
