"""Clients under test: pytest-lsp's, with the capabilities of VS Code and Neovim, and what it lacks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

FABRICATED = [sys.executable, str(Path(__file__).parent / "fabricated.py")]
EDITORS = ("visual-studio-code", "neovim", "emacs")
TIMEOUT_S = 20.0


class Client(LanguageClient):
    """What the fixtures hand out; `published` keeps every publication, `versions` the last version by URI."""

    published: list[lsp.PublishDiagnosticsParams]
    registrations: list[lsp.Registration]
    lens_refreshes: int


def make_client() -> Client:
    client = Client(converter_factory=default_converter)
    ours = lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS
    register_lsp_features(client, {name: f for name, f in DEFAULT_CLIENT_FEATURES.items() if name != ours})
    client.published, client.registrations, client.lens_refreshes = [], [], 0

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _(params: lsp.PublishDiagnosticsParams) -> None:
        client.published.append(params)
        client.diagnostics[params.uri] = params.diagnostics

    @client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def _(params: lsp.RegistrationParams) -> None:
        client.registrations.extend(params.registrations)

    @client.feature(lsp.WORKSPACE_CODE_LENS_REFRESH)
    def _(params: None) -> None:
        client.lens_refreshes += 1

    return client


def capabilities(editor: str) -> lsp.ClientCapabilities:
    """An editor's recorded capabilities; VS Code's recording predates the encodings and lens refreshing it has now."""
    recorded = client_capabilities(editor)
    if editor == "visual-studio-code":
        recorded.general = lsp.GeneralClientCapabilities(position_encodings=[lsp.PositionEncodingKind.Utf16])
    return recorded


async def begin(
    client: LanguageClient, root: Path | list[Path], editor: str = "neovim", **options: Any
) -> lsp.InitializeResult:
    """Initialize a session on one or more folders."""
    roots = root if isinstance(root, list) else [root]
    folders = [lsp.WorkspaceFolder(folder.as_uri(), folder.name) for folder in roots]
    return await client.initialize_session(
        lsp.InitializeParams(capabilities=capabilities(editor), workspace_folders=folders, **options)
    )


async def until(condition: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> Any:
    """Wait until something is so, and answer what it says."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not (value := condition()):
        assert asyncio.get_running_loop().time() < deadline, f"{what}: not within {timeout_s} s"
        await asyncio.sleep(0.02)
    return value


def open_file(client: LanguageClient, file: Path, text: str | None = None, version: int = 1) -> str:
    uri = file.as_uri()
    item = lsp.TextDocumentItem(uri, "python", version, file.read_text() if text is None else text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    return uri


def change(client: LanguageClient, uri: str, version: int, *changes: tuple[int, int, int, int, str]) -> None:
    """Replace ranges, given as the client counts: from 0, in its units."""
    events = [
        lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(a, b), lsp.Position(c, d)), text)
        for a, b, c, d, text in changes
    ]
    identifier = lsp.VersionedTextDocumentIdentifier(version=version, uri=uri)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, events))


def change_whole(client: LanguageClient, uri: str, version: int, text: str) -> None:
    identifier = lsp.VersionedTextDocumentIdentifier(version=version, uri=uri)
    whole = lsp.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [whole]))


def save(client: LanguageClient, uri: str) -> None:
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))


async def actions(
    client: LanguageClient, uri: str, first: int, last: int | None = None, only: list[str] | None = None
) -> list[lsp.CodeAction]:
    """The code actions for a range of lines, with the empty context that editors send."""
    span = lsp.Range(lsp.Position(first, 0), lsp.Position(first if last is None else last, 0))
    answer = await client.text_document_code_action_async(
        lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), span, lsp.CodeActionContext([], only=only))
    )
    return [action for action in answer or [] if isinstance(action, lsp.CodeAction)]


def edited(text: str, edits: list[lsp.TextEdit]) -> str:
    """`text` (ASCII) after a client has applied edits."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        a, b = (starts[p.line] + p.character for p in (edit.range.start, edit.range.end))
        text = text[:a] + edit.new_text + text[b:]
    return text
