"""What the server knows of one workspace folder: findings and figures, kept where the text now has them.

No I/O and no LSP type: texts come in, findings go out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from ..analyzer.findings import Finding, Hotspot, Location, Report, TraceSummary
from ..codemap.fixes.base import Confirmation, DeviceFacts
from ..codemap.source import SourceFile, split_lines
from ..codemap.suppress import is_suppressed
from .documents import Replacement, differences, moved, touches
from .merge import Held, Merge, Seen
from .messages import Analyzed
from .places import moved_finding, speaks_of

TextOf = Callable[[str], str | None]
"""The present text of a file by its path relative to the folder; None if there is none."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is kept of an analysed trace besides its findings and figures."""

    recorded_ns: int
    summary: TraceSummary
    device: DeviceFacts


@dataclass(frozen=True, slots=True)
class Mark:
    """The time per step of a function or module, at the line that defines it."""

    line: int
    column: int
    end_line: int
    end_column: int
    hotspot: Hotspot
    recorded_ns: int


@dataclass(frozen=True, slots=True)
class Repaired:
    """A finding whose fault is gone from the source, until a newer recording measures the place."""

    line: int
    column: int
    end_line: int
    end_column: int
    path: str
    qualname: str
    slug: str
    title: str
    saving_us_per_step: float
    recorded_ns: int
    """When the recording that showed the fault was made."""


class FolderState:
    """Findings of one folder."""

    def __init__(self) -> None:
        self._merge = Merge()
        self._recordings: dict[str, Recording] = {}
        self._texts: dict[str, str] = {}
        self._files: dict[str, SourceFile] = {}
        self._marks: dict[tuple[str, str], Mark] = {}
        self._repaired: list[Repaired] = []

    @property
    def seen(self) -> tuple[Seen, ...]:
        """All findings, in the order in which to do them."""
        return self._merge.seen

    @property
    def recordings(self) -> Mapping[str, Recording]:
        """The recordings taken in, by the path of the trace."""
        return self._recordings

    @property
    def newest_trace(self) -> str | None:
        """The newest recording taken in."""
        return max(self._recordings, key=lambda trace: self._recordings[trace].recorded_ns, default=None)

    def device(self, trace: str) -> DeviceFacts:
        """What is known of the device of a recording."""
        recording = self._recordings.get(trace)
        return DeviceFacts() if recording is None else recording.device

    def step_us(self, trace: str) -> float:
        """The step time of a recording; 0 if unknown."""
        return self._recordings[trace].summary.step_us if trace in self._recordings else 0.0

    def paths(self) -> frozenset[str]:
        """The files that have a finding, a figure or a repaired fault in them."""
        return frozenset(self._texts)

    def text(self, path: str) -> str | None:
        """The text that the places in a file refer to."""
        return self._texts.get(path)

    def findings_in(self, path: str) -> tuple[Seen, ...]:
        """The findings placed in a file whose statement is still there."""
        return tuple(
            seen
            for seen in self.seen
            if (where := seen.finding.location) and where.path == path and not _is_empty(where)
        )

    def is_silenced(self, seen: Seen) -> bool:
        """Whether a comment in the present text asks not to be told of a finding."""
        where = seen.finding.location
        if where is None or where.path not in self._texts:
            return False
        return is_suppressed(self._file(where.path), where, seen.finding.code, seen.finding.slug)

    def unplaced(self) -> tuple[Seen, ...]:
        """The findings without a place in the source."""
        return tuple(seen for seen in self.seen if seen.finding.location is None)

    def marks_in(self, path: str) -> tuple[Mark, ...]:
        """The times per step in a file, from the top."""
        return tuple(sorted((m for m in self._marks.values() if m.hotspot.path == path), key=lambda m: m.line))

    def repaired_in(self, path: str) -> tuple[Repaired, ...]:
        """The repaired faults in a file."""
        return tuple(repaired for repaired in self._repaired if repaired.path == path)

    @property
    def repaired(self) -> tuple[Repaired, ...]:
        """All repaired faults, the one repaired last at the end."""
        return tuple(self._repaired)

    def recall(self, repaired: Iterable[Repaired]) -> None:
        """Take in faults that were repaired before the server started."""
        self._repaired.extend(repaired)

    def take(self, answer: Analyzed, trace: str, recorded_ns: int, text_of: TextOf) -> None:
        """Take in an analysed recording; the texts it was placed in may have been edited since."""
        report = answer.report
        unchanged = {path for path, placed_in in answer.sources.items() if text_of(path) == placed_in}
        for path, placed_in in answer.sources.items():
            now = text_of(path)
            if now is None:
                continue
            self.sync(path, now)
            self._texts[path] = now
            for edit in differences(placed_in, now):
                report = _moved_report(report, path, edit)
        self._forget_measured(report, recorded_ns)
        kept = [i for i, f in enumerate(report.findings) if not self._is_repaired(f, unchanged)]
        report = replace(report, findings=tuple(report.findings[i] for i in kept))
        held = [Held(answer.anchors[i], i in answer.confirmed) for i in kept]
        self._merge.add(report, trace, recorded_ns, held)
        self._recordings[trace] = Recording(recorded_ns, report.trace, answer.device)
        for spot in report.hotspots:
            key = (spot.path, spot.qualname)
            if key not in self._marks or self._marks[key].recorded_ns <= recorded_ns:
                end = len(self._line(spot.path, spot.line)) + 1
                self._marks[key] = Mark(spot.line, 1, spot.line, max(end, 2), spot, recorded_ns)

    def drop(self, trace: str) -> None:
        """Forget a recording that was deleted."""
        self._merge.remove(trace)
        self._recordings.pop(trace, None)

    def clear(self) -> None:
        """Forget everything but what was repaired, which old traces would bring back."""
        repaired = self._repaired
        self.__init__()
        self._repaired = repaired

    def edit(self, path: str, edits: Iterable[Replacement], text: str) -> bool:
        """Move what is in a file with the edits that made its text `text`. False if the file is of no concern."""
        if path not in self._texts:
            return False
        self._texts[path] = text
        for change in edits:
            self._merge.update(lambda seen, change=change: _edited(seen, path, change))
            self._marks = {
                key: moved(mark, change) if mark.hotspot.path == path else mark for key, mark in self._marks.items()
            }
            self._repaired = [moved(one, change) if one.path == path else one for one in self._repaired]
        return True

    def sync(self, path: str, text: str) -> bool:
        """Like `edit`, for a text that became another in an unknown way: opened, reverted, changed on disk."""
        old = self._texts.get(path)
        return old is not None and old != text and self.edit(path, differences(old, text), text)

    def forget_file(self, path: str) -> None:
        """Drop what is in a file that was deleted."""
        self._texts.pop(path, None)
        self._merge.update(lambda seen: None if (w := seen.finding.location) and w.path == path else seen)
        self._marks = {key: mark for key, mark in self._marks.items() if mark.hotspot.path != path}
        self._repaired = [one for one in self._repaired if one.path != path]

    def confirm(self, seen_id: int, confirmation: Confirmation, edits: Iterable[Replacement] = ()) -> bool:
        """The fault is still in the source, at the confirmation's place moved by `edits` (those made meanwhile).

        Answers whether that changes anything to be seen.
        """
        before = next((seen.finding for seen in self.seen if seen.id == seen_id), None)

        def change(seen: Seen) -> Seen:
            if seen.id != seen_id:
                return seen
            found = replace(
                seen.finding,
                location=confirmation.location,
                fixes=confirmation.fixes,
            )
            seen = replace(seen, finding=found, is_confirmed=True, is_edited=False)
            for edit in edits:
                seen = _edited(seen, confirmation.location.path, edit)
            return seen

        self._merge.update(change)
        after = next((seen.finding for seen in self.seen if seen.id == seen_id), None)
        return after != before

    def repair(self, seen_id: int) -> Repaired | None:
        """The fault is gone from the source: the finding goes, and its place remembers it."""
        seen = next((one for one in self.seen if one.id == seen_id), None)
        if seen is None or seen.finding.location is None:
            return None
        self._merge.update(lambda one: None if one.id == seen_id else one)
        where = seen.finding.location
        repaired = Repaired(
            where.line, where.column, where.end_line, where.end_column, where.path, where.qualname,
            seen.finding.slug, seen.finding.title, seen.finding.saving_us_per_step, self._newest_ns(),
        )  # fmt: skip
        self._repaired.append(repaired)
        return repaired

    def _newest_ns(self) -> int:
        return max((recording.recorded_ns for recording in self._recordings.values()), default=-1)

    def _file(self, path: str) -> SourceFile:
        """The lines of a text, unparsed."""
        text = self._texts[path]
        known = self._files.get(path)
        if known is None or known.text is not text:
            known = self._files[path] = SourceFile(path, text, split_lines(text), None, ())
        return known

    def _line(self, path: str, line: int) -> str:
        lines = self._file(path).lines if path in self._texts else ()
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _is_repaired(self, finding: Finding, unchanged: Set[str]) -> bool:
        """Whether an older recording shows a fault that the source no longer has. One that a fix was found for does
        have it, if the file is as it was then: it has another of the kind, or the repair was undone."""
        where = finding.location
        if where is None or (finding.fixes and where.path in unchanged):
            return False
        place = (finding.slug, where.path, where.qualname)
        return any((one.slug, one.path, one.qualname) == place for one in self._repaired)

    def _forget_measured(self, report: Report, recorded_ns: int) -> None:
        """What a newer recording measured again is no longer "not yet measured"."""
        measured = {(spot.path, spot.qualname) for spot in report.hotspots}
        measured |= {(f.location.path, f.location.qualname) for f in report.findings if f.location}
        self._repaired = [
            one for one in self._repaired if recorded_ns <= one.recorded_ns or (one.path, one.qualname) not in measured
        ]


def _edited(seen: Seen, path: str, edit: Replacement) -> Seen:
    if not speaks_of(seen.finding, path):
        return seen
    where = seen.finding.location
    is_edited = seen.is_edited or (where is not None and where.path == path and touches(where, edit))
    finding = moved_finding(seen.finding, path, edit)
    return (
        seen
        if finding is seen.finding and is_edited == seen.is_edited
        else replace(seen, finding=finding, is_edited=is_edited)
    )


def _moved_report(report: Report, path: str, edit: Replacement) -> Report:
    findings = tuple(moved_finding(finding, path, edit) for finding in report.findings)
    hotspots = tuple(
        replace(spot, line=moved(Mark(spot.line, 1, spot.line, 2, spot, 0), edit).line) if spot.path == path else spot
        for spot in report.hotspots
    )
    return replace(report, findings=findings, hotspots=hotspots)


def _is_empty(where: Location) -> bool:
    return (where.line, where.column) == (where.end_line, where.end_column)
