"""Findings as LSP diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsprotocol import types as lsp

from ..analyzer.findings import Evidence, Finding, Location, Severity
from ..analyzer.report.diagnosis import cause_line
from ..analyzer.report.printable import one_line, printable
from ..codemap.notebook import NOTEBOOK_SUFFIX
from .documents import lines_with_ends, to_units
from .merge import Seen, recurring
from .notebooks import OpenNotebook
from .pages import page_uri
from .places import paths_of, trimmed
from .settings import Settings
from .state import FolderState

SOURCE = "torchtraceap"
SEVERITIES = {
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFORMATION: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}
TOP = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))


@dataclass(frozen=True, slots=True)
class _Made:
    """A diagnostic, and all that it was made from."""

    seen: Seen
    files: list[tuple[str, str | None]]
    """URI and text of each file that the finding speaks of."""
    recordings: int
    diagnostic: lsp.Diagnostic


class Publisher:
    """Turns a folder's findings into diagnostics, in one client's units. What it made is kept while it stays right:
    saving a file touches one finding of hundreds."""

    def __init__(
        self,
        state: FolderState,
        encoding: str,
        uri_of: Callable[[str], str],
        trace_uri: Callable[[str], str],
        has_related: bool,
        notebook_of: Callable[[str], OpenNotebook | None] = lambda path: None,
    ) -> None:
        self._state = state
        self._encoding = encoding
        self._uri_of = uri_of
        self._trace_uri = trace_uri
        self._has_related = has_related
        self._notebook_of = notebook_of
        self._lines: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._made: dict[int, _Made] = {}

    def diagnostics(self, path: str, settings: Settings) -> dict[str, list[lsp.Diagnostic]]:
        """The diagnostics of one file, by the URI of the document: a notebook has one for each cell."""
        shown = self.shown(path, settings)
        if self._notebook(path) is None:
            return {self._uri_of(path): [self.diagnostic(seen) for seen in shown]}
        found: dict[str, list[lsp.Diagnostic]] = {}
        for seen in shown:
            assert seen.finding.location is not None
            found.setdefault(self.place(seen.finding.location)[0], []).append(self.diagnostic(seen))
        return found

    def shown(self, path: str, settings: Settings) -> list[Seen]:
        """The findings of one file that are to be seen: wanted, not silenced by a comment, sure enough."""
        return [
            seen
            for seen in self._state.findings_in(path)
            if is_wanted(seen.finding, settings) and not self._state.is_silenced(seen)
        ]

    def unplaced(self, settings: Settings) -> dict[str, list[lsp.Diagnostic]]:
        """Diagnostics of findings without a place, on the URI of the trace that shows them."""
        found: dict[str, list[lsp.Diagnostic]] = {}
        for seen in self._state.unplaced():
            if is_wanted(seen.finding, settings):
                found.setdefault(self._trace_uri(seen.trace), []).append(self.diagnostic(seen))
        return found

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines, with ends, of the text that a file's places refer to."""
        text = self._state.text(path) or ""
        known = self._lines.get(path)
        if known is None or known[0] is not text:
            known = self._lines[path] = (text, lines_with_ends(text))
        return known[1]

    def range_of(self, where: Location) -> lsp.Range:
        """A place as the client counts."""
        where = trimmed(where, self.lines(where.path))
        return lsp.Range(
            self.position(where.path, where.line, where.column),
            self.position(where.path, where.end_line, where.end_column),
        )

    def place(self, where: Location) -> tuple[str, lsp.Range]:
        """A place as the client names it: the URI of a document and a range in it.

        A notebook that is not open as one has only a first line: its others would be lines of JSON.
        """
        span = self.range_of(where)
        if not where.path.endswith(NOTEBOOK_SUFFIX):
            return self._uri_of(where.path), span
        notebook = self._notebook(where.path)
        cell = notebook.cell_at(span.start.line + 1) if notebook is not None else None
        if cell is None:
            return self._uri_of(where.path), TOP
        start = lsp.Position(max(span.start.line - cell.above, 0), span.start.character)
        return cell.uri, lsp.Range(start, lsp.Position(max(span.end.line - cell.above, 0), span.end.character))

    def _notebook(self, path: str) -> OpenNotebook | None:
        return self._notebook_of(path) if path.endswith(NOTEBOOK_SUFFIX) else None

    def _uris_of(self, path: str) -> str:
        """What names the documents of a file, as one text."""
        notebook = self._notebook(path)
        return self._uri_of(path) if notebook is None else " ".join(cell.uri for cell in notebook.cells)

    def position(self, path: str, line: int, column: int) -> lsp.Position:
        """A line and column, from 1 and in code points, as the client counts."""
        lines = self.lines(path)
        if not 0 < line <= len(lines):
            return lsp.Position(max(line - 1, 0), 0)
        return lsp.Position(line - 1, to_units(lines[line - 1], column - 1, self._encoding))

    def diagnostic(self, seen: Seen) -> lsp.Diagnostic:
        """One finding as a diagnostic."""
        files = [(self._uris_of(path), self._state.text(path)) for path in paths_of(seen.finding)]
        recordings = len(self._state.recordings)
        made = self._made.get(seen.id)
        if made is None or made.seen is not seen or made.files != files or made.recordings != recordings:
            made = self._made[seen.id] = _Made(seen, files, recordings, self._diagnostic(seen))
        return made.diagnostic

    def forget_gone(self) -> None:
        """Let go of diagnostics of findings that are no more."""
        self._made = {seen.id: made for seen in self._state.seen if (made := self._made.get(seen.id)) is not None}

    def _diagnostic(self, seen: Seen) -> lsp.Diagnostic:
        finding = seen.finding
        page = page_uri(finding.slug)
        return lsp.Diagnostic(
            range=TOP if finding.location is None else self.place(finding.location)[1],
            severity=SEVERITIES[finding.severity],
            code=finding.slug,
            code_description=lsp.CodeDescription(page) if page else None,
            source=SOURCE,
            message=recurring(self._said(finding), len(seen.traces), len(self._state.recordings)) + self._cause(seen),
            related_information=self._related(seen) if self._has_related else None,
            data={
                "id": seen.id,
                "code": finding.code,
                "slug": finding.slug,
                "saving_us_per_step": finding.saving_us_per_step,
                "saving_pct": finding.saving_pct,
                "trace": seen.trace,
            },
        )

    def _said(self, finding: Finding) -> str:
        where = finding.location
        text = f"{finding.message}; stale: {finding.stale}, record again" if finding.stale else finding.message
        if where is None or not where.path.endswith(NOTEBOOK_SUFFIX) or self._notebook(where.path) is not None:
            return text
        lines = self.lines(where.path)
        line = lines[where.line - 1].strip() if 0 < where.line <= len(lines) else ""
        return f"`{line}`: {text}" if line else text

    def _cause(self, seen: Seen) -> str:
        """What a language model says it is due to, as a line of its own; "" where none says anything."""
        diagnosis = self._state.diagnosis(seen)
        return "" if diagnosis is None else "\n" + printable(one_line(cause_line(seen.finding.slug, diagnosis)))

    def _related(self, seen: Seen) -> list[lsp.DiagnosticRelatedInformation]:
        """The call chain and other places, then what was measured, at the finding's own place."""
        finding = seen.finding
        related = [
            lsp.DiagnosticRelatedInformation(lsp.Location(*self.place(other.location)), other.message)
            for other in finding.related
        ]
        if finding.evidence:
            where = finding.location
            here = lsp.Location(self._trace_uri(seen.trace), TOP) if where is None else lsp.Location(*self.place(where))
            measured = "; ".join(map(evidence_line, finding.evidence))
            related.append(lsp.DiagnosticRelatedInformation(here, f"measured: {measured}"))
        return related


def is_wanted(finding: Finding, settings: Settings) -> bool:
    """Whether the settings let a finding be seen."""
    return settings.shows(finding.code, finding.slug) and (settings.show_hints or finding.severity is not Severity.HINT)


def overlapping(shown: Sequence[Seen], first_line: int, last_line: int) -> list[Seen]:
    """Those findings with a line between the two (from 1, inclusive)."""
    return [
        seen
        for seen in shown
        if (where := seen.finding.location) and where.line <= last_line and where.end_line >= first_line
    ]


def evidence_line(item: Evidence) -> str:
    """One figure in words."""
    events = f" (trace events {', '.join(map(str, item.events[:5]))}{', …' if len(item.events) > 5 else ''})"
    return f"{item.name}: {evidence_value(item)}{events if item.events else ''}"


def evidence_value(item: Evidence) -> str:
    """A figure with its unit, at most four significant figures."""
    value = (
        item.value
        if isinstance(item.value, str)
        else f"{item.value:.4g}"
        if abs(item.value) < 10_000
        else f"{item.value:,.0f}"
    )
    return f"{value} {item.unit}".strip()
