"""Which files of a workspace a recording may have run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from .source import SourceFile
from .workspace import Workspace

_MOST_FILES = 150


class RecordedFiles:
    """A workspace cut down to the files that a recording may have run: those that use torch and are no tests."""

    def __init__(self, workspace: Workspace, recorded: Collection[str]) -> None:
        """`recorded` names the files that the trace is known to have run; where there are any, only they are left."""
        self._workspace = workspace
        self._recorded = frozenset(recorded)
        self._paths: tuple[str, ...] | None = None

    @property
    def root(self) -> Path:
        """The resolved root folder."""
        return self._workspace.root

    def paths(self) -> tuple[str, ...]:
        """The files left, sorted; at most some hundred."""
        if self._paths is None:
            candidates = sorted(self._recorded) or [p for p in self._workspace.paths() if not _is_test(p)]
            found = (path for path in candidates if "torch" in (self.text(path) or ""))
            self._paths = tuple(path for path, _ in zip(found, range(_MOST_FILES), strict=False))
        return self._paths

    def file(self, path: str) -> SourceFile | None:
        """As the whole workspace's."""
        return self._workspace.file(path)

    def text(self, path: str) -> str | None:
        """As the whole workspace's."""
        return self._workspace.text(path)


def _is_test(path: str) -> bool:
    parts = PurePosixPath(path).parts
    name = parts[-1]
    is_test_file = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return is_test_file or any(part in ("tests", "test") for part in parts[:-1])
