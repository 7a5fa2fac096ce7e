"""Lines that the recording run wrote beside its trace: what was executed is known, and nothing has to be inferred.

A sidecar is data from outside: a file that it names counts only where the workspace's text has the recorded hash (over
a file edited since, `drift.py` lays the recorded text), and whoever uses a line checks that it lies in the code that
ran. Whatever fails that is as good as not said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from ..analyzer.trace.model import NONE, Category, IntArray, Trace
from ..analyzer.trace.recording import ExactLines, Recording
from .cells import match_cells
from .matched import Matched
from .paths import Hashes, by_basename, common_ending, likest, path_parts
from .workspace import Workspace


class Spot(NamedTuple):
    """A line of a workspace file, as its text is now."""

    path: str
    line: int


class Exact:
    """The recorded lines of one trace, in the files of one workspace. Without a recording it knows none."""

    def __init__(self, trace: Trace, workspace: Workspace) -> None:
        recording = trace.recording or Recording()
        self._trace = trace
        self._recording = recording
        self._callers = _Table(recording.python_lines)
        self._operators = _Table(recording.operator_lines)
        self.has_any = bool(len(self._callers) or len(self._operators))
        self._root = workspace.root.as_posix().rstrip("/") + "/"
        self._hashes = Hashes(workspace)
        self._by_basename = by_basename(workspace.paths() if self.has_any or recording.sources else ())
        self._paths: dict[int, str] = {}
        """By index of the recorded file."""
        cells = match_cells(dict.fromkeys(recording.files, ()), workspace) if self.has_any else {}
        self._cells = {
            index: cells[file]
            for index, file in enumerate(recording.files)
            if file in cells and cells[file].confidence == 1.0
        }
        """The notebook cells among the recorded files whose text is as it was, by index."""

    def caller_of(self, row: int) -> Spot | None:
        """Where the caller of Python event `row` was when it called; None if unknown."""
        return self._spot(self._callers.find(int(self._trace.python_id[row])))

    def line_of(self, row: int) -> Spot | None:
        """The line of the program's own code that ran operator `row`; None if unknown."""
        return self._spot(self._operators.find(int(self._trace.external_id[row])))

    def line_under(self, row: int) -> Spot | None:
        """The line on which a frame was while its direct child `row` began, a Python event or an operator."""
        is_python = self._trace.cat[row] == Category.PYTHON_FUNCTION
        return self.caller_of(row) if is_python else self.line_of(row)

    def matched(self, owners: Collection[str]) -> dict[str, Matched]:
        """The recorded paths of frames that are, by the hash of what was recorded, files of the workspace."""
        current: dict[str, set[str]] = {}
        for index, file in enumerate(self._recording.files):
            if path := self._path(index):
                current.setdefault(self._absolute(file), set()).add(path)
        found = {}
        for owner in owners:
            parts = path_parts(owner)
            paths = {
                path
                for file, there in current.items()
                if common_ending(parts, path_parts(file)) == len(parts)
                for path in there
            }
            if len(paths) == 1:
                found[owner] = Matched(paths.pop(), 1.0)
        return found

    def _spot(self, found: tuple[int, int] | None) -> Spot | None:
        if found is None:
            return None
        file, line = found
        if (cell := self._cells.get(file)) is not None and line > 0:
            return Spot(cell.path, line + cell.shift)
        path = self._path(file)
        return Spot(path, line) if path and line > 0 else None

    def _path(self, index: int) -> str:
        """The workspace file that a recorded one is; "" where none has its text."""
        if index not in self._paths:
            known = 0 <= index < len(self._recording.files)
            self._paths[index] = self._find(self._recording.files[index]) if known else ""
        return self._paths[index]

    def _find(self, file: str) -> str:
        """Of the workspace's files with the recorded text the one whose path is most like the recorded one."""
        blob = self._recording.sources.get(file, "").lower()
        absolute = self._absolute(file)
        named = self._by_basename.get(path_parts(absolute)[-1], ()) if blob else ()
        current = self._hashes.having(blob, named)
        path = absolute.removeprefix(self._root)
        return path if path in current else likest(absolute, current)

    def _absolute(self, file: str) -> str:
        """The recorded path from the root of its machine, with "/"."""
        file, folder = file.replace("\\", "/"), self._recording.folder.replace("\\", "/")
        return file if file[1:3] == ":/" else PurePosixPath(folder, file).as_posix()


class _Table:
    """`ExactLines` to look up in; columns that are no columns of one length hold nothing."""

    def __init__(self, lines: ExactLines) -> None:
        columns = [_whole(column) for column in (lines.id, lines.file, lines.line)]
        if len({len(column) for column in columns}) != 1:
            columns = [_whole(())] * 3
        order = np.argsort(columns[0], kind="stable")
        self._ids, self._files, self._lines = (column[order] for column in columns)

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, number: int) -> tuple[int, int] | None:
        """File index and line of an id; None if there is none, or the table contradicts itself."""
        if number == NONE or not len(self._ids):
            return None
        first, past = (int(np.searchsorted(self._ids, number, side=side)) for side in ("left", "right"))
        said = set(zip(self._files[first:past].tolist(), self._lines[first:past].tolist(), strict=True))
        return said.pop() if len(said) == 1 else None


def _whole(column: Iterable[int]) -> IntArray:
    try:
        return np.array(tuple(column), dtype=np.int64)
    except OverflowError:  # numbers that no trace holds
        return np.empty(0, np.int64)
