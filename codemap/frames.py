"""The Python frames of a trace: which encloses an event, who called it, and what each frame did itself, in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..analyzer.timeline.model import CallTree
from ..analyzer.trace.model import NONE, Category, IntArray, Trace
from .labels import Kind, parse_label

_CHILD_KINDS = (Category.CPU_OP, Category.PYTHON_FUNCTION)


class Frames:
    """Looks frames up on demand. A *frame* is a PYTHON_FUNCTION row that has a file and a line."""

    def __init__(self, trace: Trace, tree: CallTree) -> None:
        self._trace = trace
        self._tree = tree
        self._end_ns = trace.end_ns
        python = trace.rows(Category.PYTHON_FUNCTION)
        self.has_any = len(python) > 0
        identified = python[trace.python_id[python] != NONE]
        order = np.argsort(trace.python_id[identified], kind="stable")
        self._ids = trace.python_id[identified][order]
        self._id_rows = identified[order]
        self._is_file_frame = np.array([_is_file_frame(name) for name in trace.names], dtype=bool)
        self._threads: dict[int, tuple[IntArray, IntArray]] = {}
        self._thread_ends: dict[int, int] = {}
        self._chains: dict[int, list[int]] = {}

    def chain(self, row: int) -> list[int]:
        """The frames that were running at `row`, innermost first (`row` itself, where it is one)."""
        innermost = self._innermost_python(row)
        if innermost not in self._chains:
            outwards = self._outwards(innermost)
            self._chains[innermost] = [each for each in outwards if self._is_file_frame[self._trace.name[each]]]
        return self._chains[innermost]

    def children(self, frame: int) -> IntArray:
        """What `frame` did itself: its calls and the operators it ran with no call, in time order."""
        rows, starts = self._thread_rows(int(self._trace.thread[frame]))
        position = int(np.searchsorted(rows, frame)) + 1
        end = int(self._end_ns[frame])
        found = []
        while position < len(rows) and starts[position] < end:
            row = int(rows[position])
            found.append(row)
            position = max(position + 1, int(np.searchsorted(starts, self._end_ns[row])))
        return np.array(found, dtype=np.int64)

    def is_open(self, frame: int) -> bool:
        """Whether the frame had not returned when recording stopped."""
        thread = int(self._trace.thread[frame])
        if thread not in self._thread_ends:
            rows, _ = self._thread_rows(thread)
            python = rows[self._trace.cat[rows] == Category.PYTHON_FUNCTION]
            self._thread_ends[thread] = int(self._end_ns[python].max())
        return int(self._end_ns[frame]) >= self._thread_ends[thread]

    def _innermost_python(self, row: int) -> int:
        """The innermost python row that encloses `row` to its end.

        Containment alone can name a function that only opened a `record_function` range and returned: the range
        reaches on past its end.
        """
        around = self._outwards(int(self._tree.python[row]))
        return next((each for each in around if self._end_ns[each] >= self._end_ns[row]), NONE)

    def _outwards(self, python_row: int) -> Iterator[int]:
        """A python row and its callers, innermost first; none for NONE. Ids that lead in a circle end it."""
        seen: set[int] = set()
        while python_row != NONE and python_row not in seen:
            seen.add(python_row)
            yield python_row
            python_row = self._caller(python_row)

    def _caller(self, python_row: int) -> int:
        """The python row that called `python_row`: by recorded id, else by containment."""
        parent_id = int(self._trace.python_parent[python_row])
        if parent_id != NONE and len(self._ids):
            position = int(np.searchsorted(self._ids, parent_id))
            if position < len(self._ids) and self._ids[position] == parent_id:
                parent = int(self._id_rows[position])
                return parent if parent != python_row else NONE
        parent = int(self._tree.parent[python_row])
        return NONE if parent == NONE else int(self._tree.python[parent])

    def _thread_rows(self, thread: int) -> tuple[IntArray, IntArray]:
        """Rows of a thread that can be a frame's children, and their start times."""
        if thread not in self._threads:
            rows = self._trace.rows(*_CHILD_KINDS)
            rows = rows[self._trace.thread[rows] == thread]
            self._threads[thread] = (rows, self._trace.ts_ns[rows])
        return self._threads[thread]


def _is_file_frame(name: str) -> bool:
    return "): " in name and parse_label(name).kind is Kind.FRAME
