"""Places in files that were edited, renamed or moved since the recording.

What ran is placed in the texts that ran, and each place is then followed to the text of today: to the same statement,
or to none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..analyzer.findings import Grain, Location
from ..analyzer.trace.model import Trace
from .drift_history import History
from .drift_match import Match, Matching
from .drift_texts import Recorded, Texts, recorded_texts
from .drift_units import Unit, units_of
from .facts import FileFacts, facts_of
from .source import SourceFile, parse_source
from .statements import Place, location_of
from .workspace import Workspace

EDITED_NOTE = "the file was edited since the recording"
_CHANGED_CONFIDENCE = 0.7
"""Of a place in a file that has changed, nobody knows how."""
_MOST_FILES = 6
"""Files in which a function is looked for that its own holds no more."""
_LEAST_MOVED = 0.6
"""Share of a recorded file's statements that another file holds which it was renamed to."""


class RecordedWorkspace:
    """A workspace as it was when recorded."""

    def __init__(self, workspace: Workspace, recorded: Mapping[str, str]) -> None:
        """`recorded` gives the texts that were other ones then, by path."""
        self._workspace = workspace
        self._recorded = recorded
        self._files: dict[str, SourceFile] = {}
        self._facts: dict[str, FileFacts] = {}

    @property
    def root(self) -> Path:
        """The resolved root folder."""
        return self._workspace.root

    def paths(self) -> tuple[str, ...]:
        """The files of today and those that are gone."""
        return tuple(sorted({*self._workspace.paths(), *self._recorded}))

    def file(self, path: str) -> SourceFile | None:
        """The file as it was."""
        if path not in self._recorded:
            return self._workspace.file(path)
        if path not in self._files:
            self._files[path] = parse_source(path, self._recorded[path])
        return self._files[path]

    def text(self, path: str) -> str | None:
        """The text as it was."""
        return self._recorded.get(path, self._workspace.text(path))

    def facts(self, path: str) -> FileFacts:
        """The facts as they were."""
        if path not in self._recorded:
            return self._workspace.facts(path)
        if path not in self._facts:
            self._facts[path] = facts_of(self._recorded[path])
        return self._facts[path]

    def holding(self, *words: str) -> tuple[str, ...]:
        """The files that held one of these identifiers."""
        ours = [path for path in self._recorded if any(map(self.facts(path).holds, words))]
        return self._joined(self._workspace.holding(*words), ours)

    def calling(self, *names: str) -> tuple[str, ...]:
        """The files that called something with one of these last names."""
        ours = [path for path in self._recorded if any(map(self.facts(path).calls, names))]
        return self._joined(self._workspace.calling(*names), ours)

    def _joined(self, theirs: Collection[str], ours: Collection[str]) -> tuple[str, ...]:
        return tuple(sorted({path for path in theirs if path not in self._recorded} | set(ours)))


@dataclass(frozen=True, slots=True)
class Stale:
    """A place that is gone from the source, with the reason in a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Now:
    file: SourceFile
    match: Match


class Drift:
    """What became of the recorded texts of one trace."""

    def __init__(self, workspace: Workspace, texts: Texts) -> None:
        self._now = workspace
        self._changed = texts.changed
        self._recorded: Mapping[str, Recorded] = {one.path: one for one in texts.recorded}
        self.workspace: Workspace = workspace
        """The files as they were recorded."""
        if self._recorded:
            self.workspace = RecordedWorkspace(workspace, {one.path: one.text for one in texts.recorded})
        self._matchings: dict[tuple[str, str], Matching] = {}

    @property
    def is_any(self) -> bool:
        """Whether anything is known to have changed."""
        return bool(self._recorded or self._changed)

    def current_paths(self, path: str) -> tuple[str, ...]:
        """The file of today that a recorded one is, or those that it may have become; none if it is gone."""
        if path not in self._recorded or self._now.text(path) is not None:
            return (path,)
        return tuple(other for other in self._recorded[path].candidates if self._is_heir(path, other))

    def follow(self, place: Place) -> Place | Stale:
        """Where the statement of a place in the recorded texts stands today."""
        where = self.location(place.location)
        callers = tuple(now for one in place.callers if isinstance(now := self.location(one), Location))
        if isinstance(where, Stale):
            return where
        inside = place.inside
        if inside is not None and inside.built is not None:
            built = self.location(inside.built)
            inside = replace(inside, built=built if isinstance(built, Location) else None)
        before = place.location
        notes = [note for note in (place.note, self._note(before, where)) if note]
        line = where.line + (place.line - before.line if self._keeps_lines(before, where) else 0)
        return replace(place, location=where, line=line, callers=callers, inside=inside, note="; ".join(notes))

    def location(self, place: Location) -> Location | Stale:
        """Where what stood at a place of the recorded texts stands today."""
        if place.path in self._changed:
            return replace(place, confidence=round(place.confidence * _CHANGED_CONFIDENCE, 3))
        if place.path not in self._recorded:
            return place
        if place.grain is Grain.FILE:
            return self._file(place)
        old = self.workspace.file(place.path)
        unit = units_of(old).at(place.line, place.column) if old is not None else None
        found = self._find(place.path, unit) if unit is not None else None
        if unit is None or found is None:
            return Stale(self._reason(place))
        now = location_of(found.file, found.match.unit.node, _qualname(place, unit, found.match.unit))
        confidence = round(place.confidence * found.match.confidence, 3)
        return replace(now, how=place.how, confidence=confidence, grain=place.grain)

    def _file(self, place: Location) -> Location | Stale:
        """A place that is a whole file."""
        paths = self.current_paths(place.path)
        file = self._now.file(paths[0]) if len(paths) == 1 else None
        if file is None:
            return Stale(self._reason(place))
        return replace(place, path=file.path, end_column=len(file.lines[0]) + 1)

    def _find(self, path: str, unit: Unit) -> _Now | None:
        """The statement in the file itself, else in another one that took over its function."""
        home = self._now.file(path)
        if home is not None and home.tree is None:
            return None  # no Python at the moment: it cannot be told what is still there
        for file in (home, *self._others(path, unit)):
            if file is not None and (match := self._matching(path, file).of(unit)) is not None:
                return _Now(file, match)
        return None

    def _others(self, path: str, unit: Unit) -> Iterator[SourceFile]:
        """Files that may hold a statement that its own does not."""
        recorded = self._recorded[path]
        if self._now.text(path) is None:
            heirs = [other for other in recorded.candidates if self._is_heir(path, other)]
            yield from (file for other in heirs if (file := self._now.file(other)) is not None)
            return
        scope = unit.defines or unit.scope
        home = self._now.file(path)
        if home is None or scope in self._matching(path, home).scopes:
            return
        name = scope.rpartition(".")[2]
        found = [
            other
            for other in self._now.holding(name)
            if other != path and other not in self._recorded and self._now.facts(other).defines(name)
        ]
        if len(found) > _MOST_FILES:
            return
        fitting = [other for other in found if self._took_over(path, other, scope)]
        if len(fitting) == 1 and (file := self._now.file(fitting[0])) is not None:
            yield file

    def _took_over(self, path: str, other: str, scope: str) -> bool:
        """Whether most of what a function held is in that function of another file."""
        old, file = self.workspace.file(path), self._now.file(other)
        if old is None or file is None:
            return False
        matching = self._matching(path, file)
        held = [unit for unit in units_of(old).scopes.get(scope, ()) if not unit.defines]
        kept = [match for unit in held if (match := matching.of(unit)) and not match.is_edited]
        return len(kept) >= max(_LEAST_MOVED * len(held), 1)

    def _is_heir(self, path: str, other: str) -> bool:
        """Whether a file of today is, by what it holds, one that is gone."""
        file = self._now.file(other)
        if file is None:
            return False
        shares = {
            one: self._matching(path, candidate).share
            for one in self._recorded[path].candidates
            if (candidate := self._now.file(one)) is not None
        }
        best = max(shares.values())
        return shares[other] >= _LEAST_MOVED and sum(share > best - 0.2 for share in shares.values()) == 1

    def _matching(self, path: str, file: SourceFile) -> Matching:
        key = (path, file.path)
        if key not in self._matchings:
            old = self.workspace.file(path)
            assert old is not None
            self._matchings[key] = Matching(units_of(old), units_of(file))
        return self._matchings[key]

    def _keeps_lines(self, before: Location, now: Location) -> bool:
        return before.path not in self._recorded or now.end_line - now.line == before.end_line - before.line

    def _note(self, before: Location, now: Location) -> str:
        """What a reader has to know of a place that was followed; "" if nothing."""
        if before.path in self._changed:
            return EDITED_NOTE
        if before.path not in self._recorded:
            return ""
        if before.grain is Grain.FILE:
            return "" if before.path == now.path else f"{EDITED_NOTE}: recorded as {before.path}"
        old, new = self.workspace.file(before.path), self._now.file(now.path)
        one = units_of(old).at(before.line, before.column) if old is not None else None
        other = units_of(new).at(now.line, now.column) if new is not None else None
        said = [] if before.line == now.line and before.path == now.path else [f"recorded as {_at(before, now.path)}"]
        if before.qualname != now.qualname:
            said.append(f"then in {before.qualname}")
        if one is not None and other is not None and one.text != other.text:
            said.append("the statement itself was edited")
        return f"{EDITED_NOTE}: {', '.join(said)}" if said else ""

    def _reason(self, place: Location) -> str:
        """Why a place is shown no more."""
        where = f"line {place.line} of {place.path}, in {place.qualname},"
        if self._now.text(place.path) is None and not self.current_paths(place.path):
            return f"it was measured on {where} and that file is gone since the recording"
        file = self._now.file(place.path)
        if file is not None and file.tree is None:
            return f"it was measured on {where} and that file cannot be read as Python now ({file.error})"
        return f"it was measured on {where} and that statement was removed or rewritten since the recording"


def find_drift(trace: Trace, workspace: Workspace, history: History | None) -> Drift:
    """What changed in the source since a trace was recorded; without a history, nothing is known to have."""
    if history is None:
        return Drift(workspace, Texts())
    texts = recorded_texts(trace, workspace, history)
    for path in texts.unchanged:
        if (text := workspace.text(path)) is not None:
            history.ran(path, text)
    for one in texts.recorded:
        history.ran(one.path, one.text)
    return Drift(workspace, texts)


def _qualname(place: Location, before: Unit, now: Unit) -> str:
    if before.defines and place.qualname == before.defines:
        return now.defines
    # Of a lambda the name is its own.
    return place.qualname if before.scope == now.scope else now.scope


def _at(before: Location, path: str) -> str:
    return f"line {before.line}" if before.path == path else f"{before.path}:{before.line}"
