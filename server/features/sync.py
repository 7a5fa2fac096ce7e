"""Documents: findings move with every edit, and are checked again when a file is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ..notebooks import NotebookText, opened_text
from ..protocol import SourceDocument
from . import record_action

if TYPE_CHECKING:
    from ..app import Server


def register(server: Server) -> None:
    """Follow the client's documents. Handlers are synchronous: asynchronous ones could end out of order."""

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        found = server.engine.folders.locate(uri)
        if found is None:
            return
        folder, path = found
        folder.uris[path] = uri
        folder.state.sync(path, opened_text(server.workspace.get_text_document(uri)).source)
        server.engine.publish(folder, path)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = server.workspace.get_text_document(uri)
        found = server.engine.folders.locate(uri)
        if not isinstance(document, SourceDocument):
            return
        edits = document.take_edits()
        if found is None or found[0].state.text(found[1]) is None:
            return
        (folder, path), opened = found, opened_text(document)
        if isinstance(opened, NotebookText):
            folder.state.sync(path, opened.source)
        else:
            folder.state.edit(path, edits, opened.source)
        server.engine.publish(folder, path)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        found = server.engine.folders.locate(params.text_document.uri)
        if found is not None:
            server.repairs.recheck(*found)
            record_action.saved(server, *found)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        found = server.engine.folders.locate(params.text_document.uri)
        if found is not None:
            # What was not saved is gone: the file on disk is the text again.
            server.repairs.file_changed(*found)
            server.engine.publish(*found)

    _follow_notebooks(server)


def _follow_notebooks(server: Server) -> None:
    """The same for notebooks, whose cells are documents."""

    def follow(uri: str) -> None:
        found, told = server.engine.folders.locate(uri), server.open_notebooks.follow(server.workspace, uri)
        if found is None or told is None:
            return
        (folder, path), (notebook, edits) = found, told
        folder.uris[path] = uri
        if edits is None:
            folder.state.sync(path, notebook.source)
        else:
            folder.state.edit(path, edits, notebook.source)
        server.engine.publish(folder, path)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenNotebookDocumentParams) -> None:
        follow(params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeNotebookDocumentParams) -> None:
        follow(params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveNotebookDocumentParams) -> None:
        found = server.engine.folders.locate(params.notebook_document.uri)
        if found is not None:
            server.repairs.recheck(*found)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseNotebookDocumentParams) -> None:
        server.open_notebooks.forget(params.notebook_document.uri)
        found = server.engine.folders.locate(params.notebook_document.uri)
        if found is not None:
            server.repairs.file_changed(*found)
            server.engine.publish(*found)
