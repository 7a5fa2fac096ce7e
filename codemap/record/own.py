"""Which files are the program's own, and what the profiler calls them."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

_HERE = str(Path(__file__).resolve().parent) + os.sep
_LIBRARY_PARTS = ("site-packages", "dist-packages")


class OwnFiles:
    """Answers for files by the name that a code object or the profiler gives them; every answer is kept."""

    def __init__(self, folder: str) -> None:
        """`folder`: the working folder when the program began; relative names start there."""
        self._folder = folder
        self._library = tuple(
            os.path.realpath(path) + os.sep
            for name in ("stdlib", "platstdlib")
            if (path := sysconfig.get_paths().get(name))
        )
        self._is_own: dict[str, bool] = {}
        self._full: dict[str, str] = {}

    def is_own(self, name: str) -> bool:
        """Whether the file is neither Python's, nor an installed package's, nor the recorder's."""
        known = self._is_own.get(name)
        if known is None:
            known = self._is_own[name] = self._look(name)
        return known

    def full(self, name: str) -> str:
        """The absolute path of a file whose name may be cut at an entry of `sys.path`; the name itself if none."""
        known = self._full.get(name)
        if known is None:
            known = self._full[name] = self._find(name)
        return known

    def shown(self, name: str) -> str:
        """Relative to the working folder for a file in it, else as `full`; with "/"."""
        full = self.full(name)
        inside = self._folder + os.sep
        return (full.removeprefix(inside) if full.startswith(inside) else full).replace(os.sep, "/")

    def _look(self, name: str) -> bool:
        if name.startswith("<"):
            return False
        full = os.path.realpath(self._from_start(self.full(name)))
        if full.startswith(_HERE) or not Path(full).is_file():
            return False
        if any(part in _LIBRARY_PARTS for part in Path(full).parts):
            return False
        return not full.startswith(self._library)

    def _find(self, name: str) -> str:
        if not name or name.startswith("<") or Path(name).is_absolute():
            return name
        for entry in (self._folder, *sys.path):
            path = os.path.join(self._from_start(entry), name)  # noqa: PTH118  a path that need not exist
            if os.path.isfile(path):  # noqa: PTH113
                return os.path.abspath(path)  # noqa: PTH100  links are kept: stacks show them
        return name

    def _from_start(self, path: str) -> str:
        """An absolute path, without asking for the present folder: the program may have deleted it."""
        return os.path.join(self._folder, path)  # noqa: PTH118  it need not exist
