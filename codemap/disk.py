"""Reading files of one folder, and never anything else."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .notebook import NOTEBOOK_SUFFIX, read_notebook
from .source import decode


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What is too much to read. Larger files are left out; the walk stops at `files`."""

    file_bytes: int = 4_000_000
    notebook_bytes: int = 64_000_000
    """Notebooks hold the pictures that their cells drew."""
    files: int = 20_000

    def allows(self, path: str, size: int) -> bool:
        """Whether a file of this size is read."""
        return size <= (self.notebook_bytes if path.endswith(NOTEBOOK_SUFFIX) else self.file_bytes)


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
    if real is None:
        return None
    try:
        info = real.stat()
        # Anything but a regular file (a pipe, a device) could block for ever.
        if not stat.S_ISREG(info.st_mode) or not limits.allows(path, info.st_size):
            return None
        return real.read_bytes()
    except OSError:
        return None


def text_of(path: str, data: bytes) -> tuple[str, str]:
    """The Python text of a file, which for a notebook is that of its cells, and "" or what is wrong with it."""
    if path.endswith(NOTEBOOK_SUFFIX):
        notebook = read_notebook(data)
        return notebook.text, notebook.error
    return decode(data)
