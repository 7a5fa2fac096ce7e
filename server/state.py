"""What the server knows of one workspace folder: findings and figures, kept where the text now has them.

No I/O and no LSP type: texts come in, findings go out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from ..analyzer.diagnosis.dossier import Dossier
from ..analyzer.findings import Diagnosis, Finding, Location, Report, TraceSummary
from ..codemap.fixes.base import Confirmation, DeviceFacts
from ..codemap.source import SourceFile, split_lines
from ..codemap.suppress import is_suppressed
from .documents import Replacement, differences, lines_with_ends, moved
from .explained import lines_down, moved_down
from .following import follow
from .identity import Words, Written, words_of, written
from .keeping import checked, edited, followed, is_empty, moved_report
from .marks import Mark, Repaired
from .merge import Held, Merge, Seen
from .messages import Analyzed
from .past import Past, Pasts, Spot, returned
from .places import speaks_of

TextOf = Callable[[str], str | None]
"""The present text of a file by its path relative to the folder; None if there is none."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is kept of an analysed trace besides its findings and figures."""

    recorded_ns: int
    summary: TraceSummary
    device: DeviceFacts


class FolderState:
    """Findings of one folder."""

    def __init__(self) -> None:
        self._merge = Merge()
        self._recordings: dict[str, Recording] = {}
        self._texts: dict[str, str] = {}
        self._files: dict[str, SourceFile] = {}
        self._marks: dict[tuple[str, str], Mark] = {}
        self._repaired: list[Repaired] = []
        self._past: dict[str, Pasts] = {}
        """By path."""
        self._words: tuple[str, tuple[str, ...], Words] | None = None
        """The text looked at last, its lines and its words."""

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
            if (where := seen.finding.location) and where.path == path and not seen.is_lost and not is_empty(where)
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
        known = [self._written(finding.location, answer.sources) for finding in report.findings]
        unchanged = {path for path, placed_in in answer.sources.items() if text_of(path) == placed_in}
        for path, placed_in in answer.sources.items():
            now = text_of(path)
            if now is None:
                continue
            self.sync(path, now)
            self._texts[path] = now
            for edit in differences(placed_in, now):
                report = moved_report(report, path, edit)
        self._forget_measured(report, recorded_ns)
        kept = [i for i, f in enumerate(report.findings) if not self._is_repaired(f, unchanged)]
        report = replace(report, findings=tuple(report.findings[i] for i in kept))
        dossiers = answer.dossiers or (None,) * len(answer.anchors)
        held = [Held(answer.anchors[i], i in answer.confirmed, known[i], dossiers[i]) for i in kept]
        self._merge.add(report, trace, recorded_ns, held)
        for path in answer.sources.keys() - unchanged:
            if path in self._texts:
                self._check(path)
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
        old = self._texts.get(path)
        if old is None:
            return False
        self._remember(path, old)
        self._texts[path] = text
        past = self._past[path].of(text)
        edits = tuple(edits)
        for change in edits:
            self._merge.update(lambda seen, change=change: edited(seen, path, change))
            self._marks = {
                key: moved(mark, change) if mark.hotspot.path == path else mark for key, mark in self._marks.items()
            }
            self._repaired = [moved(one, change) if one.path == path else one for one in self._repaired]
        if past is not None:
            self._return_to(past)
        is_inferred = any(change.is_inferred for change in edits)
        if past is None and is_inferred:
            self._follow(path, old, text)
        self._check(path, only_edited=not is_inferred)
        return True

    def _follow(self, path: str, old: str, text: str) -> None:
        """Find the statements of the text `old`, which was just left, in the one that it became."""
        past = self._past[path].of(old)
        following = follow(path, old, text) if past is not None and past.spots else None
        if past is None or following is None:
            return
        lines = lines_with_ends(self._texts[path])
        self._merge.update(
            lambda seen: followed(
                seen, path, past.spots.get(seen.id), following, lines, lambda now: self._written(now, self._texts)
            )
        )

    def _remember(self, path: str, text: str) -> None:
        """Keep where everything is in a text that is about to be left."""
        spots = {
            one.id: Spot(one.finding, one.is_edited, one.is_lost, one.written)
            for one in self.seen
            if speaks_of(one.finding, path)
        }
        marks = {key: mark for key, mark in self._marks.items() if mark.hotspot.path == path}
        repaired = tuple(one for one in self._repaired if one.path == path)
        self._past.setdefault(path, Pasts()).keep(Past(path, text, spots, marks, repaired))

    def _return_to(self, past: Past) -> None:
        """The text is again what it was: so is every place in it."""
        self._merge.update(lambda seen: returned(seen, past))
        self._marks = {
            key: replace(past.marks[key], hotspot=mark.hotspot, recorded_ns=mark.recorded_ns)
            if key in past.marks
            else mark
            for key, mark in self._marks.items()
        }
        known = {(one.slug, one.qualname, one.recorded_ns): one for one in past.repaired}
        self._repaired = [
            known.get((one.slug, one.qualname, one.recorded_ns), one) if one.path == past.path else one
            for one in self._repaired
        ]

    def _check(self, path: str, *, only_edited: bool = False) -> None:
        """Hide what is no more on its own statement, and show again what is."""
        lines = lines_with_ends(self._texts[path])
        self._merge.update(
            lambda seen: checked(seen, path, lines) if seen.is_edited or seen.is_lost or not only_edited else seen
        )

    def sync(self, path: str, text: str) -> bool:
        """Like `edit`, for a text that became another in an unknown way: opened, reverted, changed on disk."""
        old = self._texts.get(path)
        return old is not None and old != text and self.edit(path, differences(old, text), text)

    def forget_file(self, path: str) -> None:
        """Drop what is in a file that was deleted."""
        self._texts.pop(path, None)
        self._past.pop(path, None)
        self._merge.update(lambda seen: None if (w := seen.finding.location) and w.path == path else seen)
        self._marks = {key: mark for key, mark in self._marks.items() if mark.hotspot.path != path}
        self._repaired = [one for one in self._repaired if one.path != path]

    def confirm(self, seen_id: int, confirmation: Confirmation, edits: Iterable[Replacement] = ()) -> bool:
        """The fault is still in the source, at the confirmation's place moved by `edits` (those made meanwhile).

        Answers whether that changes anything to be seen.
        """
        edits = tuple(edits)
        before = next((seen.finding for seen in self.seen if seen.id == seen_id), None)
        # What stands at a place of the text that was asked about is known as long as that is the text of now.
        confirmed = None if edits else self._written(confirmation.location, self._texts)

        def change(seen: Seen) -> Seen:
            if seen.id != seen_id:
                return seen
            found = replace(
                seen.finding,
                location=confirmation.location,
                fixes=confirmation.fixes,
            )
            seen = replace(
                seen,
                finding=found,
                is_confirmed=True,
                is_edited=False,
                is_lost=False,
                written=confirmed or seen.written,
            )
            for edit in edits:
                seen = edited(seen, confirmation.location.path, edit)
            return seen

        self._merge.update(change)
        if edits and confirmation.location.path in self._texts:
            self._check(confirmation.location.path)
        after = next((seen.finding for seen in self.seen if seen.id == seen_id), None)
        return after != before

    def explain(self, seen_id: int, dossier: Dossier, said: Diagnosis | str) -> None:
        """A language model that was told `dossier` has explained a finding, or has not, and why. Of no concern if the
        finding is gone, or has been measured anew since."""

        def change(seen: Seen) -> Seen:
            if seen.id != seen_id or seen.dossier != dossier:
                return seen
            if isinstance(said, str):
                return replace(seen, unexplained=said)
            return replace(seen, finding=replace(seen.finding, diagnosis=said), unexplained="")

        self._merge.update(change)

    def forget_explained(self) -> None:
        """Drop what language models said."""
        self._merge.update(
            lambda seen: (
                replace(seen, finding=replace(seen.finding, diagnosis=None), unexplained="")
                if seen.finding.diagnosis is not None or seen.unexplained
                else seen
            )
        )

    def diagnosis(self, seen: Seen) -> Diagnosis | None:
        """What a language model says of a finding, as long as the source that it was shown stands as it was."""
        lines = self.lines_down(seen)
        said = seen.finding.diagnosis
        return None if said is None or lines is None else moved_down(said, lines)

    def lines_down(self, seen: Seen) -> int | None:
        """How many lines lower the source that a language model is shown of a finding stands than when that was
        written down; None if it has been changed since."""
        where = seen.finding.location
        if seen.dossier is None or seen.dossier.source is None or where is None or where.path not in self._texts:
            return 0
        return lines_down(seen.dossier.source, where.line, self._file(where.path).lines)

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

    def _written(self, where: Location | None, texts: Mapping[str, str]) -> Written | None:
        """What stands at a place of one of `texts`."""
        if where is None or where.path not in texts:
            return None
        text = texts[where.path]
        if self._words is None or self._words[0] is not text:
            self._words = (text, lines_with_ends(text), words_of(text))
        return written(self._words[1], where, self._words[2])

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
