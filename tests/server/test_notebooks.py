"""Notebooks in an editor that tells of their cells: diagnostics, fixes and edits in the cells' documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from torchtraceap.analyzer.findings import Related, TextEdit
from torchtraceap.server.notebooks import OpenCell, OpenNotebook

from ..codemap.notebooks import notebook_json
from .clients import Client, actions, begin, capabilities, change_whole, edited, open_file, save, until
from .reports import finding, place, report, write_trace

CELLS = ("import torch", "%time warm()\ndef forward(x):\n    y = slow(x)\n    return y", "z = late(x)")
SLOW_LINE = 5
"""Of the notebook's text: one line and an empty one stand above the second code cell."""
LATE_LINE = 8


def cell_uri(file: Path, number: int) -> str:
    return f"vscode-notebook-cell:{file}#W{number}sZmlsZQ%3D%3D"


@pytest.fixture
def file(project: Path) -> Path:
    (project / "nb.ipynb").write_bytes(notebook_json("# Title", *CELLS, markdown={0}))
    return project / "nb.ipynb"


@pytest.fixture
def trace(project: Path) -> None:
    related = (Related("used here", place("nb.ipynb", LATE_LINE, 5, 9)),)
    slow = finding("slow", place("nb.ipynb", SLOW_LINE, 9, 13, "forward"), related=related)
    late = finding("late", place("nb.ipynb", LATE_LINE, 5, 9), code="TAP998")
    write_trace(project / "runs" / "a.pt.trace.json", report(slow, late))


def open_notebook(client: Client, file: Path) -> list[str]:
    """Open it as VS Code does: all cells in the notebook, the Python ones as documents."""
    uris = [cell_uri(file, number) for number in range(len(CELLS) + 1)]
    kinds = [lsp.NotebookCellKind.Markup, *[lsp.NotebookCellKind.Code] * len(CELLS)]
    cells = [lsp.NotebookCell(kind, uri) for kind, uri in zip(kinds, uris, strict=True)]
    notebook = lsp.NotebookDocument(file.as_uri(), "jupyter-notebook", 1, cells)
    documents = [lsp.TextDocumentItem(uri, "python", 1, text) for uri, text in zip(uris[1:], CELLS, strict=True)]
    client.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, documents))
    return uris[1:]


def type_in(client: Client, file: Path, uri: str, version: int, span: tuple[int, int, int, int], text: str) -> None:
    identifier = lsp.VersionedTextDocumentIdentifier(version=version, uri=uri)
    a, b, c, d = span
    change = lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(a, b), lsp.Position(c, d)), text)
    content = lsp.NotebookDocumentCellContentChanges(identifier, [change])
    event = lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(text_content=[content]))
    client.notebook_document_did_change(
        lsp.DidChangeNotebookDocumentParams(lsp.VersionedNotebookDocumentIdentifier(version, file.as_uri()), event)
    )


def shown(client: Client, uri: str) -> list[tuple[object, int, int, int]]:
    return [
        (d.code, d.range.start.line, d.range.start.character, d.range.end.character)
        for d in client.diagnostics.get(uri, ())
    ]


async def start(client: Client, project: Path) -> lsp.InitializeResult:
    """As VS Code does; the capabilities recorded of it are from before it had notebooks."""
    able = capabilities("visual-studio-code")
    able.notebook_document = lsp.NotebookDocumentClientCapabilities(lsp.NotebookDocumentSyncClientCapabilities())
    folders = [lsp.WorkspaceFolder(project.as_uri(), project.name)]
    return await client.initialize_session(lsp.InitializeParams(capabilities=able, workspace_folders=folders))


async def test_the_server_asks_for_the_cells(client: Client, project: Path) -> None:
    answer = await start(client, project)
    sync = answer.capabilities.notebook_document_sync
    assert sync is not None and sync.save
    (selector,) = sync.notebook_selector
    assert selector.cells is not None and [cell.language for cell in selector.cells] == ["python"]


async def test_diagnostics_are_in_the_cells(client: Client, project: Path, file: Path, trace: None) -> None:
    await start(client, project)
    setup, model, last = open_notebook(client, file)
    await until(lambda: shown(client, last) and shown(client, model), "the diagnostics")
    assert shown(client, model) == [("slow", 2, 8, 12)]
    assert shown(client, last) == [("late", 0, 4, 8)]
    assert shown(client, setup) == [] and shown(client, file.as_uri()) == []
    (diagnostic,) = client.diagnostics[model]
    related = (diagnostic.related_information or [])[0]
    assert (related.location.uri, related.location.range.start.line) == (last, 0)


async def test_a_fix_edits_the_cell_s_document(client: Client, project: Path, file: Path, trace: None) -> None:
    await start(client, project)
    _, model, last = open_notebook(client, file)
    await until(lambda: shown(client, last) and shown(client, model), "the diagnostics")
    fix, ignore, *_ = await actions(client, model, 2)
    assert fix.title.startswith("Use fixed")
    for action, wanted in ((fix, "    y = fixed(x)"), (ignore, "    y = slow(x)  # torchtraceap: ignore[slow]")):
        resolved = action if action.edit else await client.code_action_resolve_async(action)
        assert resolved.edit and resolved.edit.document_changes
        (edit,) = resolved.edit.document_changes
        assert isinstance(edit, lsp.TextDocumentEdit)
        assert (edit.text_document.uri, edit.text_document.version) == (model, 1)
        text = edited(CELLS[1], [one for one in edit.edits if isinstance(one, lsp.TextEdit)])
        assert text.splitlines()[2] == wanted
    assert await actions(client, model, 0, only=["quickfix"]) == []


async def test_diagnostics_follow_typing_in_any_cell(client: Client, project: Path, file: Path, trace: None) -> None:
    await start(client, project)
    setup, model, last = open_notebook(client, file)
    await until(lambda: shown(client, last) and shown(client, model), "the diagnostics")
    type_in(client, file, setup, 2, (0, 0, 0, 0), "import os\n\n")
    type_in(client, file, model, 3, (0, 0, 0, 0), "(\n")
    type_in(client, file, model, 4, (3, 4, 3, 4), "xy = ")
    await until(lambda: shown(client, model) == [("slow", 3, 13, 17)], "the moved diagnostic")
    assert shown(client, last) == [("late", 0, 4, 8)]


async def test_cells_may_come_and_go(client: Client, project: Path, file: Path, trace: None) -> None:
    await start(client, project)
    setup, model, last = open_notebook(client, file)
    await until(lambda: shown(client, last) and shown(client, model), "the diagnostics")
    change = lsp.NotebookCellArrayChange(start=1, delete_count=1, cells=[])
    structure = lsp.NotebookDocumentCellChangeStructure(change, did_close=[lsp.TextDocumentIdentifier(setup)])
    event = lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(structure=structure))
    client.notebook_document_did_change(
        lsp.DidChangeNotebookDocumentParams(lsp.VersionedNotebookDocumentIdentifier(2, file.as_uri()), event)
    )
    type_in(client, file, model, 3, (2, 0, 2, 0), "  ")
    await until(lambda: shown(client, model) == [("slow", 2, 10, 14)], "the moved diagnostic")
    assert shown(client, last) == [("late", 0, 4, 8)]


async def test_a_saved_cure_is_seen(client: Client, project: Path, file: Path, trace: None) -> None:
    await start(client, project)
    _, model, last = open_notebook(client, file)
    await until(lambda: shown(client, last) and shown(client, model), "the diagnostics")
    type_in(client, file, model, 2, (2, 8, 2, 12), "fast")
    client.notebook_document_did_save(lsp.DidSaveNotebookDocumentParams(lsp.NotebookDocumentIdentifier(file.as_uri())))
    await until(lambda: shown(client, model) == [], "the end of the diagnostic")
    assert shown(client, last) == [("late", 0, 4, 8)]


async def test_a_closed_notebook_is_told_of_at_its_top(client: Client, project: Path, file: Path, trace: None) -> None:
    await start(client, project)
    await until(lambda: len(shown(client, file.as_uri())) == 2, "the diagnostics")
    assert sorted(shown(client, file.as_uri())) == [("late", 0, 0, 0), ("slow", 0, 0, 0)]
    (slow,) = [one for one in client.diagnostics[file.as_uri()] if one.code == "slow"]
    assert slow.message.startswith("`y = slow(x)`: slow happens")
    _, model, last = open_notebook(client, file)
    await until(lambda: shown(client, last) and shown(client, model), "the diagnostics in the cells")
    await until(lambda: shown(client, file.as_uri()) == [], "the end of those at the top")
    documents = [lsp.TextDocumentIdentifier(uri) for uri in (model, last)]
    client.notebook_document_did_close(
        lsp.DidCloseNotebookDocumentParams(lsp.NotebookDocumentIdentifier(file.as_uri()), documents)
    )
    await until(lambda: len(shown(client, file.as_uri())) == 2, "the diagnostics at the top")
    await until(lambda: shown(client, model) == shown(client, last) == [], "the end of those in the cells")


async def test_an_editor_that_opens_the_json_is_told_at_its_top(
    client: Client, project: Path, file: Path, trace: None
) -> None:
    """No line of the JSON is one of the code: typing there moves nothing into it, and nothing is offered there."""
    await begin(client, project)
    uri = open_file(client, file)

    def told() -> list[tuple[object, int, str]]:
        found = [(d.code, d.range.start.line, d.message.split(":")[0]) for d in client.diagnostics.get(uri, ())]
        return sorted(found, key=str)

    both = [("late", 0, "`z = late(x)`"), ("slow", 0, "`y = slow(x)`")]
    await until(lambda: told() == both, "the diagnostics, of the code")
    shorter = notebook_json(*CELLS)
    change_whole(client, uri, 2, shorter.decode())
    await until(lambda: client.published[-1].version == 2, "the diagnostics of the edited text")
    assert told() == both
    for line in range(shorter.count(b"\n")):
        where = lsp.Position(line, 0)
        assert await client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), where)) is None
        assert await actions(client, uri, line) == []
    assert not await client.text_document_code_lens_async(lsp.CodeLensParams(lsp.TextDocumentIdentifier(uri)))
    change_whole(client, uri, 3, shorter.decode().replace("slow(x)", "fast(x)"))
    save(client, uri)
    await until(lambda: told() == both[:1], "the end of the cured one")


def test_edits_behind_the_last_line_of_a_cell_stay_in_its_document() -> None:
    cells = (OpenCell("one", 1, ("a",), 1), OpenCell("two", 1, ("b",), 3))
    notebook = OpenNotebook("file:///nb.ipynb", 1, "a\n\nb\n", "", cells)
    edits = [TextEdit("nb.ipynb", 2, 1, 2, 1, "new\n"), TextEdit("nb.ipynb", 3, 1, 4, 1, "")]
    by_cell = {cell.uri: found for cell, found in notebook.edits_by_cell(edits)}
    assert by_cell == {
        "one": [TextEdit("nb.ipynb", 1, 2, 1, 2, "\nnew")],
        "two": [TextEdit("nb.ipynb", 1, 1, 1, 2, "")],
    }
