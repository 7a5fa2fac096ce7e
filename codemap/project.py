"""The workspace on disk: Python files under one root, with the editor's unsaved texts laid over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from .disk import Content, ReadLimits, content_of, read_inside
from .facts import FileFacts
from .notebook import NOTEBOOK_SUFFIX, cells_of, parse_notebook
from .source import BOM, SourceFile, parse_source
from .survey import Survey


class Parses:
    """The last parse of each file, for who opens one workspace after another: a text that is the same is not parsed
    again."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._files: dict[tuple[Path, str], SourceFile] = {}

    def parse(self, root: Path, path: str, content: Content) -> SourceFile:
        """The parsed file."""
        known = self._files.pop((root, path), None)
        if known is None or content.error or not _is_of(known, content):
            known = _parsed(path, content)
        self._files[root, path] = known  # the one used last comes last
        if len(self._files) > self._most:
            del self._files[next(iter(self._files))]
        return known


class ProjectWorkspace:
    """A `Workspace` over a folder. Each file is read and parsed at most once; open another one to see later edits."""

    def __init__(
        self,
        survey: Survey,
        overlay: Mapping[str, str],
        limits: ReadLimits,
        parses: Parses | None = None,
        max_age_s: float = 0.0,
    ) -> None:
        self._root = survey.root
        self._survey = survey
        self._parses = parses
        self._overlay = dict(overlay)
        self._limits = limits
        self._max_age_s = max_age_s
        self._contents: dict[str, Content | None] = {}
        self._files: dict[str, SourceFile | None] = {}
        self._facts: dict[str, FileFacts] = {}
        """Of unsaved texts."""
        self._found: dict[tuple[bool, tuple[str, ...]], tuple[str, ...]] = {}
        self._paths: tuple[str, ...] | None = None

    @property
    def root(self) -> Path:
        """The resolved root folder."""
        return self._root

    def paths(self) -> tuple[str, ...]:
        """All Python files and notebooks, sorted; ignored folders and what `.gitignore` names left out."""
        if self._paths is None:
            self._survey.refresh(self._max_age_s)
            self._paths = tuple(sorted({*self._survey.paths(), *self._overlay}))
        return self._paths

    def file(self, path: str) -> SourceFile | None:
        """The parsed file; None when it does not exist, lies outside the root, or is too large to read."""
        if path not in self._files:
            self._files[path] = self._parse(path)
        return self._files[path]

    def text(self, path: str) -> str | None:
        """The file's text, not parsed; None where `file` is."""
        content = self._content(path)
        return None if content is None else content.text

    def facts(self, path: str) -> FileFacts:
        """What the file's text says at a glance."""
        self.paths()
        found = None if path in self._overlay else self._survey.facts(path)
        if found is None:
            if path not in self._facts:
                self._facts[path] = self._survey.facts_of_unsaved(path, self.text(path) or "")
            found = self._facts[path]
        return found

    def holding(self, *words: str) -> tuple[str, ...]:
        """The paths, sorted, of the files that may hold one of these identifiers; all others do not."""
        return self._where(False, words, lambda facts: any(facts.holds(word) for word in words))

    def calling(self, *names: str) -> tuple[str, ...]:
        """The paths, sorted, of the files that may call something with one of these last names."""
        return self._where(True, names, lambda facts: any(facts.calls(name) for name in names))

    def _where(self, is_call: bool, words: tuple[str, ...], wanted: Callable[[FileFacts], bool]) -> tuple[str, ...]:
        key = is_call, words
        if key not in self._found:
            self.paths()
            on_disk = [path for path in self._survey.where(wanted) if path not in self._overlay]
            unsaved = [path for path in self._overlay if wanted(self.facts(path))]
            self._found[key] = tuple(sorted([*on_disk, *unsaved]))
        return self._found[key]

    def _parse(self, path: str) -> SourceFile | None:
        content = self._content(path)
        if content is None:
            return None
        return _parsed(path, content) if self._parses is None else self._parses.parse(self._root, path, content)

    def _content(self, path: str) -> Content | None:
        if path not in self._contents:
            self._contents[path] = self._read(path)
        return self._contents[path]

    def _read(self, path: str) -> Content | None:
        if path not in self._overlay:
            data = read_inside(self._root, path, self._limits)
            return None if data is None else content_of(path, data)
        text = self._overlay[path]
        return content_of(path, text.encode("utf-8", "replace")) if path.endswith(NOTEBOOK_SUFFIX) else Content(text)


def open_workspace(
    root: Path,
    overlay: Mapping[str, str] | None = None,
    *,
    limits: ReadLimits | None = None,
    parses: Parses | None = None,
    survey: Survey | None = None,
    max_age_s: float = 0.0,
) -> ProjectWorkspace:
    """A workspace over `root`.

    `overlay` gives unsaved editor texts by path relative to the root, with "/" (of a notebook, its JSON); `parses` and
    `survey` keep what is learnt for the next one; which files there are is not looked at again within `max_age_s`.
    """
    limits = limits or ReadLimits()
    survey = survey or Survey(root.resolve(), limits)
    return ProjectWorkspace(survey, overlay or {}, limits, parses, max_age_s)


def _is_of(file: SourceFile, content: Content) -> bool:
    """Whether that is what the file was parsed from. The text of a notebook can be that of other cells as well."""
    return file.text == content.text.removeprefix(BOM) and cells_of(file) == content.notebook


def _parsed(path: str, content: Content) -> SourceFile:
    if content.notebook is not None:
        return parse_notebook(path, content.notebook)
    return parse_source(path, content.text, content.error)
