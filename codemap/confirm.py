"""Asking the fixers what the source at a place says of a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..analyzer.findings import Finding, Location
from .fixes.base import Case, Confirmation, DeviceFacts, Fixer
from .recorded import RecordedFiles
from .search import search
from .statements import Place
from .workspace import Workspace


class Confirmer:
    """Asks the fixers about places."""

    def __init__(self, workspace: Workspace, device: DeviceFacts, files: RecordedFiles | None) -> None:
        self._workspace = workspace
        self._device = device
        self._files = files
        self.failures: dict[str, str] = {}
        """By pattern, what its fixer raised."""

    def confirm(self, fixer: Fixer | None, finding: Finding, where: Place) -> Confirmation | None:
        """What the source at a place says of a finding."""
        if fixer is None:
            return None
        located = replace(finding, location=where.location)
        case = Case(located, where.location, where.callers, self._workspace, self._device)
        return self._guarded(fixer, lambda: fixer.confirm(case))

    def search(self, fixer: Fixer | None, finding: Finding) -> Confirmation | None:
        """The likeliest statement of the workspace for a finding that the trace gives no line of."""
        files = self._files
        if fixer is None or files is None:
            return None
        return self._guarded(fixer, lambda: search(fixer, finding, files, self._device))

    def is_cured(self, fixer: Fixer, where: Place | None) -> bool:
        """Whether the source at a place that does not hold the fault holds what fixes it: it was recorded before."""
        if fixer.cure is None or where is None:
            return False
        if fixer.cure.is_elsewhere:
            texts = [self._workspace.text(path) for path in self._files.paths()] if self._files is not None else []
        else:
            texts = [_function_text(self._workspace, where.location)]
        return any(fixer.cure.words.search(text) for text in texts if text)

    def _guarded(self, fixer: Fixer, ask: Callable[[], Confirmation | None]) -> Confirmation | None:
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - a fixer's fault must cost no more than its own fix
            self.failures[fixer.slug] = f"the fix of {fixer.slug} failed: {type(error).__name__}: {error}"
            return None


def _function_text(workspace: Workspace, location: Location) -> str:
    """The text of the function that holds a place."""
    file = workspace.file(location.path)
    if file is None:
        return ""
    spans = [(f.first_line, f.end_line) for f in file.functions if f.first_line <= location.line <= f.end_line]
    first, last = min(spans, key=lambda span: span[1] - span[0])
    return "\n".join(file.lines[first - 1 : last])
