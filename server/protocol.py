"""pygls, put right: line ends, position units, answers to malformed requests, no tracebacks sent, no message boxes."""

from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument, Workspace

from .documents import Replacement, differences, from_units, lines_with_ends, replacement

Change = lsp.TextDocumentContentChangeEvent


class SourceDocument(TextDocument):
    """A document whose lines part where Python's do, and that remembers how its text was changed.

    pygls parts lines with `str.splitlines`: one form feed or U+2028 in a file and every later edit lands on the wrong
    line.
    """

    edits: list[Replacement]

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.edits = []
        self._split_source = ""
        self._split_lines: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, with their ends; parted once for each text."""
        source = self.source
        if source is not self._split_source:
            self._split_source, self._split_lines = source, lines_with_ends(source)
        return self._split_lines

    def apply_change(self, change: Change) -> None:
        """Apply one change and remember it in `edits`."""
        old = self.source
        if not isinstance(change, lsp.TextDocumentContentChangePartial):
            self._source = change.text
            self.edits += differences(old, change.text)
            return
        start, start_offset = self._locate(change.range.start)
        end, end_offset = self._locate(change.range.end)
        new = old[:start_offset] + change.text + old[end_offset:]
        self._source = new
        if end[0] > start[0] + 1 and len(lines_with_ends(change.text)) > 1:
            # A formatter's whole block: what is equal within it stays where it is.
            self.edits += differences(old, new)
        else:
            self.edits.append(replacement(*start, *end, change.text))

    def take_edits(self) -> tuple[Replacement, ...]:
        """The changes since the last call."""
        edits, self.edits = tuple(self.edits), []
        return edits

    def _locate(self, position: lsp.Position) -> tuple[tuple[int, int], int]:
        """A client's position as line and column from 1, and as an offset; past the end of a line is its end."""
        lines = self.lines
        before = sum(map(len, lines[: position.line]))
        if position.line >= len(lines):
            ends_open = bool(lines) and lines[-1][-1] not in "\r\n"
            row = len(lines) if ends_open else len(lines) + 1
            column = len(lines[-1]) + 1 if ends_open else 1
            return (row, column), before
        line = lines[position.line].rstrip("\r\n")
        column = from_units(line, position.character, str(self.position_codec.encoding))
        return (position.line + 1, column + 1), before + column


class SourceWorkspace(Workspace):
    """A workspace of `SourceDocument`s."""

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> SourceDocument:
        return SourceDocument(
            doc_uri,
            source=source,
            version=version,
            language_id=language_id,
            sync_kind=self._sync_kind,
            position_codec=self._position_codec,
        )


class Protocol(LanguageServerProtocol):
    """The protocol with `SourceWorkspace`, and errors that neither leave a client waiting nor tell it our paths."""

    def use_source_documents(self, params: lsp.InitializeParams) -> None:
        """Put a `SourceWorkspace` in place of the workspace that pygls has just made."""
        made = self.workspace
        self._workspace = SourceWorkspace(
            made.root_uri, self._server._text_document_sync_kind, params.workspace_folders or [], made.position_encoding
        )

    @property
    def received_shutdown(self) -> bool:
        """Whether the client asked for the end in an orderly way."""
        return self._shutdown

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Decode a message. A malformed request gets an answer, where pygls would leave the client waiting."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def _send_response(self, msg_id: Any, result: Any = None, error: lsp.ResponseError | None = None) -> None:
        if error is not None:
            error.data = None  # pygls puts the traceback here, with the paths of this machine
        super()._send_response(msg_id, result, error)
