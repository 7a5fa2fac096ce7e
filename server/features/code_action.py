"""Code actions: the fixes of the findings on a line, all safe fixes of a file, and silencing a finding; a range round a
block, and recording.

They come from the server's own findings and the range asked for: editors send an empty `context.diagnostics` once a
line has moved. Edits are made when an action is resolved, in the text as it then is.
"""

from __future__ import annotations

import ast
import logging
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from ...analyzer.findings import Fix, Safety, TextEdit
from ...codemap.edits import EditError, apply_edits
from ...codemap.notebook import NOTEBOOK_SUFFIX
from ...codemap.suppress import suppressing
from ...codemap.titles import titled
from ..documents import lines_with_ends, to_units
from ..folders import Folder
from ..merge import Seen
from ..notebooks import OpenNotebook
from ..publish import overlapping
from ..repairs import Stale
from . import record_action, tag_action

if TYPE_CHECKING:
    from ..app import Server

FIX_ALL = "source.fixAll.torchtraceap"
KINDS = [lsp.CodeActionKind.QuickFix, FIX_ALL, tag_action.KIND, record_action.KIND]

log = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Offer code actions."""

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)
    )
    async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        found = server.engine.locate(params.text_document.uri)
        if found is None:
            return []
        folder, path, above = found
        actions = _actions(server, folder, path, _moved_down(params, above))
        if not _resolves_edits(server.client_capabilities):
            actions = [one for one in actions if one.command is not None or (await resolve(one)).edit is not None]
        return actions

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        data: dict[str, Any] = action.data if isinstance(action.data, dict) else {}
        found = server.engine.locate(str(data.get("uri")))
        if found is None:
            return action
        folder, path, _ = found
        try:
            edits = await _edits(server, folder, path, data)
            if edits:
                action.edit = workspace_edit(server, folder, edits)
        except (Stale, EditError) as error:
            log.warning("%s: not done, since %s", action.title, error)
        return action


def workspace_edit(server: Server, folder: Folder, edits: Sequence[TextEdit]) -> lsp.WorkspaceEdit:
    """Edits by file, each with the version of the text it was made for, so that the editor can refuse a stale one."""
    changes: list[lsp.TextDocumentEdit | lsp.CreateFile | lsp.RenameFile | lsp.DeleteFile] = []
    for path in dict.fromkeys(edit.path for edit in edits):
        document = server.engine.document(folder, path)
        of_file = [edit for edit in edits if edit.path == path]
        if isinstance(document, OpenNotebook):
            changes += _cell_edits(document, of_file, server.encoding)
            continue
        if path.endswith(NOTEBOOK_SUFFIX):
            raise Stale(f"{path} is not open as a notebook; `torchtraceap fix` can change it")
        lines = lines_with_ends(_text(server, folder, path))
        identifier = lsp.OptionalVersionedTextDocumentIdentifier(
            folder.uri_of(path), document.version if document else None
        )
        converted = [_to_client(edit, lines, server.encoding) for edit in of_file]
        changes.append(lsp.TextDocumentEdit(identifier, [*converted]))
    return lsp.WorkspaceEdit(document_changes=changes)


def _cell_edits(notebook: OpenNotebook, edits: list[TextEdit], encoding: str) -> list[lsp.TextDocumentEdit]:
    """The same for a notebook, by cell."""
    changes = []
    for cell, of_cell in notebook.edits_by_cell(edits):
        lines = lines_with_ends("\n".join(cell.source))
        identifier = lsp.OptionalVersionedTextDocumentIdentifier(cell.uri, cell.version)
        changes.append(lsp.TextDocumentEdit(identifier, [_to_client(edit, lines, encoding) for edit in of_cell]))
    return changes


def _moved_down(params: lsp.CodeActionParams, lines: int) -> lsp.CodeActionParams:
    """The request with its range in the lines of the file's text, for a cell of a notebook."""
    start, end = params.range.start, params.range.end
    span = lsp.Range(lsp.Position(start.line + lines, start.character), lsp.Position(end.line + lines, end.character))
    return lsp.CodeActionParams(params.text_document, span, params.context)


def _actions(server: Server, folder: Folder, path: str, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    publisher = server.engine.publisher(folder)
    shown = publisher.shown(path, folder.settings)
    here = overlapping(shown, params.range.start.line + 1, params.range.end.line + 1)
    uri = params.text_document.uri
    actions: list[lsp.CodeAction] = []
    if _wants(params.context, lsp.CodeActionKind.QuickFix):
        offered = {seen.id: publisher.diagnostic(seen) for seen in here}
        for seen in here:
            actions += [_fix_action(seen, fix, uri, offered[seen.id]) for fix in seen.finding.fixes]
        actions += [_ignore_action(seen, uri, offered[seen.id]) for seen in here]
    if _wants(params.context, FIX_ALL) and any(_has_safe_fix(seen) for seen in shown):
        title = "TorchTraceAP: apply all safe fixes in this file"
        actions.append(lsp.CodeAction(title, kind=FIX_ALL, data={"uri": uri, "do": "fixAll"}))
    text = _text(server, folder, path)
    if _wants(params.context, tag_action.KIND):
        actions += server.tags.offered(path, text, params)
    if _wants(params.context, record_action.KIND) and not path.endswith(NOTEBOOK_SUFFIX):
        actions += record_action.offered(folder, path, text, params)
    return actions


def _fix_action(seen: Seen, fix: Fix, uri: str, diagnostic: lsp.Diagnostic) -> lsp.CodeAction:
    return lsp.CodeAction(
        titled(fix, seen.finding).title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=fix.safety is Safety.SAFE or None,
        data={"uri": uri, "do": "fix", "finding": seen.id, "fix": fix.id},
    )


def _ignore_action(seen: Seen, uri: str, diagnostic: lsp.Diagnostic) -> lsp.CodeAction:
    return lsp.CodeAction(
        f"Ignore {seen.finding.slug} on this line",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        data={"uri": uri, "do": "ignore", "finding": seen.id},
    )


async def _edits(server: Server, folder: Folder, path: str, data: dict[str, Any]) -> Sequence[TextEdit]:
    if data.get("do") == "fixAll":
        shown = server.engine.publisher(folder).shown(path, folder.settings)
        fixes = await server.repairs.safe_fixes(folder, [seen for seen in shown if _has_safe_fix(seen)])
        return tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits))
    if data.get("do") == "fix":
        return (await server.repairs.current_fix(folder, int(data["finding"]), str(data["fix"]))).edits
    if data.get("do") == tag_action.DO:
        return server.tags.edits(path, _text(server, folder, path), int(data["first"]), int(data["last"]))
    return _ignoring(server, folder, int(data["finding"]))


def _ignoring(server: Server, folder: Folder, seen_id: int) -> Sequence[TextEdit]:
    """A comment at the end of the statement's last line: there it can't fall into a string or behind a backslash."""
    seen = next((one for one in folder.state.seen if one.id == seen_id), None)
    where = seen.finding.location if seen else None
    if seen is None or where is None:
        raise Stale("the finding is gone")
    text = _text(server, folder, where.path)
    lines = lines_with_ends(text)
    line = lines[where.end_line - 1].rstrip("\r\n") if where.end_line <= len(lines) else ""
    column, comment = suppressing(line, seen.finding.slug)
    edit = TextEdit(where.path, where.end_line, column, where.end_line, column, comment)
    if _parses(text) and not _parses(apply_edits(text, [edit])):
        raise Stale("a comment cannot stand at the end of this line")
    return [edit]


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _text(server: Server, folder: Folder, path: str) -> str:
    document = server.engine.document(folder, path)
    return (folder.state.text(path) or "") if document is None else document.source


def _to_client(edit: TextEdit, lines: Sequence[str], encoding: str) -> lsp.TextEdit:
    def position(line: int, column: int) -> lsp.Position:
        if line > len(lines):
            return lsp.Position(line - 1, 0)
        return lsp.Position(line - 1, to_units(lines[line - 1], column - 1, encoding))

    span = lsp.Range(position(edit.line, edit.column), position(edit.end_line, edit.end_column))
    return lsp.TextEdit(span, edit.new_text)


def _has_safe_fix(seen: Seen) -> bool:
    return any(fix.safety is Safety.SAFE for fix in seen.finding.fixes)


def _wants(context: lsp.CodeActionContext, kind: str) -> bool:
    """Whether actions of `kind` are asked for: all are unless `only` names kinds, each standing for those below it."""
    return context.only is None or any(
        f"{kind}.".startswith(f"{getattr(only, 'value', only)!s}.") for only in context.only
    )


def _resolves_edits(capabilities: lsp.ClientCapabilities) -> bool:
    actions = capabilities.text_document.code_action if capabilities.text_document else None
    return bool(actions and actions.resolve_support and "edit" in actions.resolve_support.properties)
