"""Which files of a workspace a recording may have run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path, PurePosixPath

from .facts import FileFacts
from .source import SourceFile
from .workspace import Workspace

_SAMPLE = 150


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
        """The files left, sorted."""
        if self._paths is None:
            candidates = sorted(self._recorded) or [p for p in self._workspace.paths() if not _is_test(p)]
            self._paths = tuple(path for path in candidates if self.facts(path).mentions_torch)
        return self._paths

    def sample(self) -> tuple[str, ...]:
        """Few enough of the files to look each one over; those that define modules come first."""
        if len(self.paths()) <= _SAMPLE:
            return self.paths()
        return tuple(sorted(self.paths(), key=lambda path: not _defines_modules(self.facts(path)))[:_SAMPLE])

    def file(self, path: str) -> SourceFile | None:
        """As the whole workspace's."""
        return self._workspace.file(path)

    def text(self, path: str) -> str | None:
        """As the whole workspace's."""
        return self._workspace.text(path)

    def facts(self, path: str) -> FileFacts:
        """As the whole workspace's."""
        return self._workspace.facts(path)

    def holding(self, *words: str) -> tuple[str, ...]:
        """As the whole workspace's, of the files left."""
        return self._left(self._workspace.holding(*words))

    def calling(self, *names: str) -> tuple[str, ...]:
        """As the whole workspace's, of the files left."""
        return self._left(self._workspace.calling(*names))

    def _left(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        left = set(self.paths())
        return tuple(path for path in paths if path in left)


def _defines_modules(facts: FileFacts) -> bool:
    return "Module)" in facts.definitions or "Module," in facts.definitions


def _is_test(path: str) -> bool:
    parts = PurePosixPath(path).parts
    name = parts[-1]
    is_test_file = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return is_test_file or any(part in ("tests", "test") for part in parts[:-1])
