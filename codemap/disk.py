"""Reading files of one folder, and never anything else; writing a file whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .notebook import NOTEBOOK_SUFFIX, Notebook, read_notebook
from .source import decode


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What is too much to read. Larger files are left out; the walk stops at `files`."""

    file_bytes: int = 4_000_000
    notebook_bytes: int = 64_000_000
    """Notebooks hold the pictures that their cells drew."""
    files: int = 20_000

    def most_bytes(self, path: str) -> int:
        """The size up to which a file is read."""
        return self.notebook_bytes if path.endswith(NOTEBOOK_SUFFIX) else self.file_bytes


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds."""

    text: str
    """The Python text, which of a notebook is that of its cells."""
    error: str = ""
    """What is wrong with it; "" if nothing is."""
    notebook: Notebook | None = None
    """The notebook that it is."""


def inside(root: Path, path: str) -> Path | None:
    """The real path of one relative to `root` (itself real); None where it leads out, also through a link."""
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts or "\0" in path:
        return None
    try:
        real = (root / relative).resolve()
    except (OSError, RuntimeError):  # a loop of links
        return None
    return real if real.is_relative_to(root) else None


def read_inside(root: Path, path: str, limits: ReadLimits) -> bytes | None:
    """A file's content; None if it is no regular file inside `root`, too large, or cannot be read."""
    real = inside(root, path)
    return None if real is None else read_regular(real, limits.most_bytes(path))


def read_regular(path: Path, most_bytes: int) -> bytes | None:
    """A file's content; None if it is no regular file, larger than `most_bytes`, or cannot be read."""
    try:
        info = path.stat()
        # Anything but a regular file (a pipe, a device) could block for ever.
        if not stat.S_ISREG(info.st_mode) or info.st_size > most_bytes:
            return None
        return path.read_bytes()
    except OSError:
        return None


def content_of(path: str, data: bytes) -> Content:
    """What the bytes of the file `path` say."""
    if not path.endswith(NOTEBOOK_SUFFIX):
        return Content(*decode(data))
    notebook = read_notebook(data)
    return Content(notebook.text, notebook.error, notebook)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file at once as a whole, its folder too. Raises OSError and leaves nothing behind where it cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
