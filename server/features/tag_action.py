"""A code action: a `record_function` range round the selected statements, or round the one at the cursor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ...analyzer.findings import TextEdit
from ...codemap.edits import EditError

if TYPE_CHECKING:
    from ...codemap.source import SourceFile

KIND = "refactor.rewrite.torchtraceap"
DO = "tag"
TITLE = "TorchTraceAP: put a record_function range round this block"
MENTIONS = "torch"
"""Files without this word are not looked at."""
MOST_CHARACTERS = 1 << 18
"""Nor are larger ones: they would have to be parsed while the editor waits."""

log = logging.getLogger(__name__)


class TagActions:
    """Offers the action and makes its edit. Keeps the file that was asked for last, parsed."""

    def __init__(self) -> None:
        self._file: SourceFile | None = None

    def offered(self, path: str, text: str, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """The action, if the lines asked for can have a range. Nothing while somebody only moves the cursor."""
        is_asked_for = params.context.trigger_kind != lsp.CodeActionTriggerKind.Automatic
        if not is_asked_for or len(text) > MOST_CHARACTERS or MENTIONS not in text:
            return []
        first, last = lines_of(params.range)
        from ...codemap.tagging import check_tag  # with the fixers behind it: the client is answered first

        try:
            check_tag(self._parsed(path, text), first, last)
        except EditError as error:
            log.debug("no range round lines %d to %d of %s: %s", first, last, path, error)
            return []
        data = {"uri": params.text_document.uri, "do": DO, "first": first, "last": last}
        return [lsp.CodeAction(TITLE, kind=KIND, data=data)]

    def edits(self, path: str, text: str, first_line: int, last_line: int) -> Sequence[TextEdit]:
        """The edit. Raises EditError where there can be none."""
        from ...codemap.tagging import tag_edits

        return tag_edits(self._parsed(path, text), first_line, last_line)

    def _parsed(self, path: str, text: str) -> SourceFile:
        from ...codemap.source import parse_source

        if self._file is None or (self._file.path, self._file.text) != (path, text):
            self._file = parse_source(path, text)
        return self._file


def lines_of(span: lsp.Range) -> tuple[int, int]:
    """The lines (from 1) that a selection covers; one that ends before the first character of a line leaves it out."""
    first, last = span.start.line + 1, span.end.line + 1
    return (first, last - 1) if last > first and span.end.character == 0 else (first, last)
