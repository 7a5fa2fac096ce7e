"""Which files of a folder are the project's own Python: ignored folders left out, every real file named once.

Links are followed only where they lead to something inside the folder that is not listed by its own name; nothing
outside is looked at, and a circle of links is walked once.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pathspec

IGNORED_FOLDERS = frozenset({"__pycache__", "__pypackages__", "node_modules", "site-packages", "venv", "env"})
"""Never walked into, nor any folder whose name starts with a dot, nor one that holds a `pyvenv.cfg`."""
SUFFIXES = (".py", ".ipynb")
MAX_FOLDERS = 50_000
"""The walk ends after so many: a data set may lie in the folder too."""
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""Stands for the bytes of a file name that are no UTF-8; no report, and no editor, could name such a file."""

_Ignores = tuple[tuple[str, pathspec.GitIgnoreSpec], ...]
"""The `.gitignore` files that hold in a folder, outermost first, each with the folder that it stands in."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One file: its path relative to the root, with "/", and what changes when it is written."""

    path: str
    size: int
    mtime_ns: int


def walk(root: Path) -> Iterator[Listed]:
    """The Python files and notebooks under `root` (a real path), in no particular order."""
    return _Walk(str(root)).run()


class _Walk:
    def __init__(self, root: str) -> None:
        self._root = root
        self._entered: set[str] = set()
        """Real paths of the folders that were walked."""
        self._files: set[str] = set()
        """Real paths of the files that were listed."""
        self._links: list[tuple[str, _Ignores]] = []

    def run(self) -> Iterator[Listed]:
        yield from self._below(self._root, "", ())
        # What links lead to is looked at when everything that has a name of its own is known.
        while self._links:
            links, self._links = sorted(self._links, key=lambda link: link[0]), []
            for path, ignores in links:
                yield from self._through(path, ignores)

    def _through(self, path: str, ignores: _Ignores) -> Iterator[Listed]:
        """What the link at `path` leads to, if it lies in the root and was not listed yet."""
        try:
            real = Path(self._root, path).resolve()
            inside = real.relative_to(self._root)
            info = real.stat()
        except (OSError, RuntimeError, ValueError):  # gone; a circle of links; outside
            return
        if not IGNORED_FOLDERS.isdisjoint(inside.parts):
            return
        if stat.S_ISDIR(info.st_mode):
            if not _matches(ignores, path + "/"):
                yield from self._below(str(real), path + "/", ignores)
        elif path.endswith(SUFFIXES) and not _matches(ignores, path):
            yield from self._list(str(real), path, info)

    def _below(self, start: str, prefix: str, ignores: _Ignores) -> Iterator[Listed]:
        """The files in a real folder and below, named by `prefix`. By a list of folders to come: nesting may be deeper
        than calls can be."""
        pending = [(start, prefix, ignores)]
        while pending and len(self._entered) < MAX_FOLDERS:
            folder, prefix, ignores = pending.pop()
            if folder in self._entered:
                continue
            self._entered.add(folder)
            entries = _entries(folder)
            names = {entry.name for entry in entries}
            if "pyvenv.cfg" in names and prefix:
                continue
            if ".gitignore" in names and (spec := _ignore_spec(Path(folder, ".gitignore"))) is not None:
                ignores = (*ignores, (prefix, spec))
            for entry in entries:
                path = prefix + entry.name
                if entry.is_symlink():
                    if not entry.name.startswith("."):
                        self._links.append((path, ignores))
                elif entry.is_dir(follow_symlinks=False):
                    if not is_ignored_name(entry.name) and not _matches(ignores, path + "/"):
                        pending.append((entry.path, path + "/", ignores))
                elif entry.name.endswith(SUFFIXES) and not _matches(ignores, path):
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    yield from self._list(entry.path, path, info)

    def _list(self, real: str, path: str, info: os.stat_result) -> Iterator[Listed]:
        if real in self._files or _NO_TEXT.search(path):
            return
        self._files.add(real)
        if stat.S_ISREG(info.st_mode):
            yield Listed(path, info.st_size, info.st_mtime_ns)


def is_ignored_name(name: str) -> bool:
    """Whether folders of this name are never walked into."""
    return name.startswith(".") or name in IGNORED_FOLDERS


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone meanwhile, not ours to read, or too deep to be named
        return []


def _matches(ignores: _Ignores, path: str) -> bool:
    """Whether git would ignore `path`: the innermost `.gitignore` that speaks of it decides."""
    for base, spec in reversed(ignores):
        verdict = spec.check_file(path.removeprefix(base)).include
        if verdict is not None:
            return verdict
    return False


def _ignore_spec(path: Path) -> pathspec.GitIgnoreSpec | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_size > 1 << 20:
            return None
        return pathspec.GitIgnoreSpec.from_lines(path.read_text("utf-8", errors="replace").splitlines())
    except (OSError, ValueError):
        return None
