"""Whether what a language model is told, or has said, of a finding still holds for the text of now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analyzer.diagnosis.dossier import Excerpt
from ..analyzer.findings import Diagnosis
from ..codemap.excerpts import dedented


def lines_down(source: Excerpt, line: int, lines: Sequence[str]) -> int | None:
    """How many lines lower the source that a model is shown now stands, if its marked line is now `line`.

    `lines` are the file's, without ends. None if it does not stand there as it was.
    """
    down = line - source.marked_line
    first = source.first_line + down
    if first < 1 or dedented(lines[first - 1 : first - 1 + len(source.lines)]) != source.lines:
        return None
    return down


def moved_down(diagnosis: Diagnosis, lines: int) -> Diagnosis:
    """A diagnosis whose edit is made so many lines lower."""
    if diagnosis.edit is None or not lines:
        return diagnosis
    edits = (replace(edit, line=edit.line + lines, end_line=edit.end_line + lines) for edit in diagnosis.edit.edits)
    return replace(diagnosis, edit=replace(diagnosis.edit, edits=tuple(edits)))
