"""The files of one workspace, read at most once each and never from outside its root."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from .source import SourceFile


class Workspace(Protocol):
    """Read-only access to a project's Python files. Paths are relative to the root, with "/"."""

    @property
    def root(self) -> Path:
        """The resolved root folder."""
        ...

    def paths(self) -> tuple[str, ...]:
        """All Python files, sorted; ignored folders (.git, .venv, node_modules, site-packages, ...) left out."""
        ...

    def file(self, path: str) -> SourceFile | None:
        """The parsed file; None when it does not exist, lies outside the root, or is too large to read."""
        ...

    def text(self, path: str) -> str | None:
        """The file's text, not parsed; None where `file` is."""
        ...
