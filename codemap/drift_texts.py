"""Which text of each file a recording ran, where that is not the text of today.

Known for sure by the hash that a recording run writes. Else of the texts that the file had about the time of the
recording the one that fits what was recorded: functions by name and first line, and what each of them called.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..analyzer.trace.model import Category, Trace
from .drift_fit import Fit
from .drift_history import History
from .labels import Kind, Label, parse_label
from .paths import Hashes, by_basename, common_ending, is_library, likest, path_parts
from .source import parse_source
from .workspace import Workspace

_EARLIEST_NS, _LATEST_NS = 1_400_000_000 * 10**9, 4_000_000_000 * 10**9
_MOST_OWNERS = 400
_MOST_RENAMED = 40
"""Files that a recorded file may have become which are looked at."""
_LEAST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Recorded:
    """A file as it was recorded."""

    path: str
    """Where it stood, as a path of the workspace."""
    text: str
    candidates: tuple[str, ...] = ()
    """Files of the workspace that it may have become, if it does not stand there any more."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The files that were recorded in another form."""

    recorded: tuple[Recorded, ...] = ()
    changed: frozenset[str] = frozenset()
    """Files that are known to have changed since, with no text of then."""
    unchanged: frozenset[str] = frozenset()
    """Recorded files whose text is that of today, as far as can be told."""


def recorded_texts(trace: Trace, workspace: Workspace, history: History) -> Texts:
    """The texts that a trace ran, of the files whose text is another one today."""
    return _Finder(trace, workspace, history).find()


def recorded_at_ns(trace: Trace, history: History) -> int:
    """When the trace was recorded (unix, ns), by its own clock, else by its file's; 0 if unknown."""
    started = trace.recording.started_ns if trace.recording is not None else 0
    first = int(trace.ts_ns[0]) if len(trace) else 0
    times = (started, trace.info.base_ns + first, history.recorded_ns)
    return next((time for time in times if _EARLIEST_NS < time < _LATEST_NS), 0)


class _Finder:
    def __init__(self, trace: Trace, workspace: Workspace, history: History) -> None:
        self._trace = trace
        self._workspace = workspace
        self._history = history
        self._time_ns = recorded_at_ns(trace, history)
        self._by_basename = by_basename(path for path in workspace.paths() if path.endswith(".py"))
        self._recorded: dict[str, Recorded] = {}
        self._changed: set[str] = set()
        self._unchanged: set[str] = set()
        self._owners = self._recorded_owners()
        self._fit = Fit(trace)
        self._definers: dict[str, list[str]] | None = None

    def find(self) -> Texts:
        hashed = self._by_hash()
        for owner, labels in self._owners.items():
            if not any(_is_same_file(owner, file) for file in hashed):
                self._by_fit(owner, labels)
        unchanged = self._unchanged - self._changed - set(self._recorded)
        return Texts(tuple(self._recorded.values()), frozenset(self._changed), frozenset(unchanged))

    # By the recording's hashes

    def _by_hash(self) -> list[str]:
        """The recorded files whose hash is known."""
        sources = self._trace.recording.sources if self._trace.recording is not None else {}
        own = {file: blob.lower() for file, blob in sources.items() if not is_library(file) and file.endswith(".py")}
        hashes = Hashes(self._workspace)
        lost: dict[str, tuple[str, str]] = {}
        for file, blob in own.items():
            named = self._by_basename.get(path_parts(file)[-1], ())
            current = hashes.having(blob, named)
            path = likest(file, current or named)
            if current:
                self._unchanged.add(path or current[0])
            else:
                lost[file] = blob, path
        texts = self._history.texts(blob for blob, _ in lost.values()) if lost else {}
        for file, (blob, path) in lost.items():
            if blob in texts:
                candidates = () if path else self._heirs(texts[blob], blob)
                self._add(path or _alias(file), texts[blob], candidates)
            elif path:
                self._changed.add(path)
            elif moved := self._history.files_of(blob):
                self._alias_of(file, moved)
        return list(own)

    # By what fits

    def _by_fit(self, owner: str, labels: Sequence[Label]) -> None:
        path = likest(owner, self._by_basename.get(path_parts(owner)[-1], ()))
        present = self._workspace.text(path) if path else None
        if not path or present is None:
            self._renamed(owner, labels)
            return
        # Of texts that fit equally well the first counts: what was seen, then the later commit.
        versions = (*self._history.seen(path), *reversed(self._history.versions(path, self._time_ns, present)))
        others = [text for text in dict.fromkeys(versions) if text != present]
        fits = self._fit.share(labels, present) == 1.0
        if not others:
            if fits:
                self._unchanged.add(path)
            return
        # Of texts that fit equally well, today's counts if it was written before the recording.
        is_older = 0 < self._history.written_ns(path) <= self._time_ns
        order = [present, *others] if is_older or self._history.comes_with_trace else [*others, present]
        best = max(order, key=lambda text: self._fit.both(owner, labels, text))
        if best == present:
            if fits:
                self._unchanged.add(path)
        elif self._fit.share(labels, best) >= _LEAST_SHARE:
            self._add(path, best)

    @cached_property
    def _past(self) -> tuple[tuple[Mapping[str, list[str]], Callable[[str], tuple[str, ...]]], ...]:
        """The files that there were, by their last part, and what tells their texts: first what was seen."""
        history, time_ns = self._history, self._time_ns
        return (
            (by_basename(history.seen_files()), history.seen),
            (by_basename(history.files_at(time_ns)), lambda path: history.versions(path, time_ns)),
        )

    def _renamed(self, owner: str, labels: Sequence[Label]) -> None:
        """A recorded file that the workspace has no more: by the repository, else by its functions and their lines."""
        names = [label for label in labels if not label.name.startswith("<")]
        if is_library(owner) or not names:
            return
        for files, texts_of in self._past:
            old = likest(owner, files.get(path_parts(owner)[-1], ()))
            for text in texts_of(old) if old and old not in self._recorded else ():
                if self._fit.share(labels, text) == 1.0:
                    self._add(old, text, self._heirs(text, ""))
                    return
        fitting = [
            path for path in self._defining(names) if self._fit.share(names, self._workspace.text(path) or "") == 1
        ]
        is_known = len({label.name for label in names}) > 1 or (
            len(names) == 1 and names[0].name not in ("forward", "main", "__init__", "__call__")
        )
        if len(fitting) == 1 and is_known and not self._is_recorded(fitting[0]):
            self._alias_of(owner, fitting)

    def _is_recorded(self, path: str) -> bool:
        """Whether the trace names the file itself."""
        return any(common_ending(path_parts(owner), path_parts(path)) > 1 or path == owner for owner in self._owners)

    def _heirs(self, text: str, blob: str) -> tuple[str, ...]:
        """Files that may hold what a file held that is gone, the likeliest first."""
        moved = self._history.files_of(blob) if blob else ()
        if moved:
            return tuple(path for path in moved if self._workspace.text(path) is not None)
        functions = parse_source("", text).functions
        names = [Label(Kind.FRAME, function.name, "", 0) for function in functions if "<" not in function.name]
        return tuple(self._defining(names))

    def _defining(self, labels: Sequence[Label]) -> list[str]:
        """Files that define most of these functions."""
        if self._definers is None:
            self._definers = {}
            for path in (path for paths in self._by_basename.values() for path in paths):
                for name in {one.qualname.rpartition(".")[2] for one in self._workspace.facts(path).defined()}:
                    self._definers.setdefault(name, []).append(path)
        names = {label.name for label in labels}
        counts = Counter(path for name in names for path in self._definers.get(name, ()))
        found = [path for path, count in counts.items() if count >= _LEAST_SHARE * len(names)]
        return sorted(found, key=lambda path: (-counts[path], path))[:_MOST_RENAMED]

    def _alias_of(self, file: str, paths: Sequence[str]) -> None:
        """The recorded file is one of the workspace under another name."""
        text = self._workspace.text(paths[0])
        if text is not None:
            self._add(_alias(file), text, (paths[0],))

    def _add(self, path: str, text: str, candidates: tuple[str, ...] = ()) -> None:
        self._recorded[path] = Recorded(path, text, candidates)

    def _recorded_owners(self) -> Mapping[str, list[Label]]:
        """The frames of the trace by recorded file, each once."""
        texts: Iterable[str] = (name for name in self._trace.names if "): " in name)
        if not len(self._trace.rows(Category.PYTHON_FUNCTION)):
            texts = {part for stack in self._trace.stacks for part in stack.split(";") if "): " in part}
        owners: dict[str, list[Label]] = {}
        for label in map(parse_label, texts):
            if label.kind is Kind.FRAME and not _is_foreign(label.owner):
                owners.setdefault(label.owner, []).append(label)
        return owners if len(owners) <= _MOST_OWNERS else {}


def _is_foreign(owner: str) -> bool:
    """Whether a recorded file is a library's or of Python itself, not the program's."""
    first = path_parts(owner)[0].removesuffix(".py")
    return is_library(owner) or first in sys.stdlib_module_names


def _alias(file: str) -> str:
    """A recorded path as one of the workspace."""
    return "/".join(part for part in path_parts(file) if part not in ("/", "..") and not part.endswith(":"))


def _is_same_file(owner: str, file: str) -> bool:
    """Whether two recorded names, one cut at an entry of `sys.path`, are of one file."""
    parts, others = path_parts(owner), path_parts(file)
    return common_ending(parts, others) == min(len(parts), len(others))
