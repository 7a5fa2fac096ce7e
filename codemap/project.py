"""The workspace on disk: Python files under one root, with the editor's unsaved texts laid over them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pathspec

from .source import BOM, SourceFile, decode, parse_source

IGNORED_FOLDERS = frozenset({"__pycache__", "__pypackages__", "node_modules", "site-packages", "venv", "env"})
"""Never walked into, nor any folder whose name starts with a dot, nor one that holds a `pyvenv.cfg`."""
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""Stands for the bytes of a file name that are no UTF-8; no report, and no editor, could name such a file."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What is too much to read. Larger files are left out; the walk stops at `files`."""

    file_bytes: int = 4_000_000
    files: int = 20_000


class Parses:
    """The last parse of each file, for who opens one workspace after another: a text that is the same is not parsed
    again."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._files: dict[tuple[Path, str], SourceFile] = {}

    def parse(self, root: Path, path: str, text: str, error: str) -> SourceFile:
        """The parsed file; `error` is what is wrong with its encoding."""
        known = self._files.pop((root, path), None)
        if known is None or error or known.text != text.removeprefix(BOM):
            known = parse_source(path, text, error)
        self._files[root, path] = known  # the one used last comes last
        if len(self._files) > self._most:
            del self._files[next(iter(self._files))]
        return known


class ProjectWorkspace:
    """A `Workspace` over a folder. Each file is read and parsed at most once; open another one to see later edits."""

    def __init__(
        self, root: Path, overlay: Mapping[str, str], limits: ReadLimits, parses: Parses | None = None
    ) -> None:
        self._root = root.resolve()
        self._parses = parses
        self._overlay = dict(overlay)
        self._limits = limits
        self._texts: dict[str, tuple[str | None, str]] = {}
        self._files: dict[str, SourceFile | None] = {}
        self._paths: tuple[str, ...] | None = None

    @property
    def root(self) -> Path:
        """The resolved root folder."""
        return self._root

    def paths(self) -> tuple[str, ...]:
        """All Python files, sorted; ignored folders and what `.gitignore` names left out."""
        if self._paths is None:
            found = set(self._overlay)
            for path in _walk(self._root):
                if len(found) >= self._limits.files:
                    break
                found.add(path)
            self._paths = tuple(sorted(found))
        return self._paths

    def file(self, path: str) -> SourceFile | None:
        """The parsed file; None when it does not exist, lies outside the root, or is too large to read."""
        if path not in self._files:
            self._files[path] = self._parse(path, *self._read_once(path))
        return self._files[path]

    def text(self, path: str) -> str | None:
        """The file's text, not parsed; None where `file` is."""
        return self._read_once(path)[0]

    def _parse(self, path: str, text: str | None, error: str) -> SourceFile | None:
        if text is None:
            return None
        if self._parses is None:
            return parse_source(path, text, error)
        return self._parses.parse(self._root, path, text, error)

    def _read_once(self, path: str) -> tuple[str | None, str]:
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> tuple[str | None, str]:
        """The file's text (None if it must not or cannot be read) and what is wrong with its encoding."""
        if path in self._overlay:
            return self._overlay[path], ""
        inside = self._inside(path)
        if inside is None:
            return None, ""
        try:
            info = inside.stat()
            # Anything but a regular file (a pipe, a device) could block for ever.
            if not stat.S_ISREG(info.st_mode) or info.st_size > self._limits.file_bytes:
                return None, ""
            data = inside.read_bytes()
        except OSError:
            return None, ""
        return decode(data)

    def _inside(self, path: str) -> Path | None:
        """The real path of a relative one; None where it leads out of the root, also through a symbolic link."""
        relative = PurePosixPath(path)
        if relative.is_absolute() or ".." in relative.parts or "\0" in path:
            return None
        try:
            real = (self._root / relative).resolve()
        except (OSError, RuntimeError):  # a loop of links
            return None
        return real if real.is_relative_to(self._root) else None


def open_workspace(
    root: Path,
    overlay: Mapping[str, str] | None = None,
    *,
    limits: ReadLimits | None = None,
    parses: Parses | None = None,
) -> ProjectWorkspace:
    """A workspace over `root`. `overlay` gives unsaved editor texts by path relative to the root, with "/"; `parses`
    keeps what is parsed for the next one."""
    return ProjectWorkspace(root, overlay or {}, limits or ReadLimits(), parses)


def _walk(root: Path) -> Iterator[str]:
    """Relative paths of the Python files under `root`. Symbolic links to folders are not followed."""
    ignores: list[tuple[str, pathspec.GitIgnoreSpec]] = []
    for folder, names, files in os.walk(root, followlinks=False):
        relative = Path(folder).relative_to(root).as_posix()
        prefix = "" if relative == "." else relative + "/"
        ignores = [(base, spec) for base, spec in ignores if prefix.startswith(base)]
        if ".gitignore" in files and (spec := _ignore_spec(Path(folder) / ".gitignore")):
            ignores.append((prefix, spec))
        names[:] = sorted(
            name for name in names if not _is_ignored_folder(folder, name) and not _matches(ignores, f"{prefix}{name}/")
        )
        for name in sorted(files):
            path = prefix + name
            if name.endswith(".py") and not _NO_TEXT.search(path) and not _matches(ignores, path):
                yield path


def _is_ignored_folder(parent: str, name: str) -> bool:
    return name.startswith(".") or name in IGNORED_FOLDERS or Path(parent, name, "pyvenv.cfg").exists()


def _matches(ignores: list[tuple[str, pathspec.GitIgnoreSpec]], path: str) -> bool:
    """Whether git would ignore `path`: the innermost `.gitignore` that speaks of it decides."""
    for base, spec in reversed(ignores):
        verdict = spec.check_file(path.removeprefix(base)).include
        if verdict is not None:
            return verdict
    return False


def _ignore_spec(path: Path) -> pathspec.GitIgnoreSpec | None:
    if not path.is_file() or path.is_symlink():
        return None
    try:
        return pathspec.GitIgnoreSpec.from_lines(path.read_text("utf-8", errors="replace").splitlines())
    except (OSError, ValueError):
        return None
