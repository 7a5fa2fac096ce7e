"""The files of one workspace, read at most once each and never from outside its root."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from .facts import FileFacts
from .source import SourceFile


class Workspace(Protocol):
    """Read-only access to a project's Python files. Paths are relative to the root, with "/"."""

    @property
    def root(self) -> Path:
        """The resolved root folder."""
        ...

    def paths(self) -> tuple[str, ...]:
        """All Python files and notebooks, sorted; ignored folders (.git, .venv, site-packages, ...) left out."""
        ...

    def file(self, path: str) -> SourceFile | None:
        """The parsed file; None when it does not exist, lies outside the root, or is too large to read."""
        ...

    def text(self, path: str) -> str | None:
        """The file's text, not parsed; None where `file` is."""
        ...

    def facts(self, path: str) -> FileFacts:
        """What the file's text says at a glance; nothing, where `file` is None."""
        ...

    def holding(self, *words: str) -> tuple[str, ...]:
        """The paths, sorted, of the files that may hold one of these identifiers; all others do not. Parses nothing."""
        ...

    def calling(self, *names: str) -> tuple[str, ...]:
        """The paths, sorted, of the files that may call something with one of these last names. Parses nothing."""
        ...
