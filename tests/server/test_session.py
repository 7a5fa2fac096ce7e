"""The server over its pipes, with fabricated analysis: what editors see."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from torchtraceap.analyzer.findings import Related

from .clients import EDITORS, Client, actions, begin, change, edited, open_file, save, until
from .reports import finding, place, report, write_trace

SOURCE = "import torch\n\n\ndef forward(x):\n    y = slow(x)\n    return y\n"


def slow(**changes):
    return finding("slow", place("model.py", 5, 9, 13, "forward"), **changes)


def shown(client: Client, uri: str):
    return [
        (d.code, d.range.start.line, d.range.start.character, d.range.end.character)
        for d in client.diagnostics.get(uri, ())
    ]


@pytest.fixture
def model(project: Path) -> Path:
    file = project / "model.py"
    file.write_text(SOURCE)
    return file


@pytest.mark.parametrize("editor", EDITORS)
async def test_trace_to_fix(client: Client, project: Path, model: Path, editor: str) -> None:
    await begin(client, project, editor)
    uri = open_file(client, model)
    related = (Related("called here", place("model.py", 6, 5, 13, "forward")),)
    write_trace(project / "runs" / "a.pt.trace.json", report(slow(related=related)))
    await until(lambda: shown(client, uri), "the diagnostic")
    (diagnostic,) = client.diagnostics[uri]
    assert shown(client, uri) == [("slow", 4, 8, 12)]
    assert diagnostic.source == "torchtraceap" and diagnostic.severity == lsp.DiagnosticSeverity.Warning
    assert diagnostic.message.startswith("slow happens: 9.80 of 22.3 ms per step")
    assert diagnostic.data["slug"] == "slow"
    assert client.published[-1].version == 1
    told = [info.message for info in diagnostic.related_information or []]
    evidence = ["time per step: 9.8 ms (trace events 3, 14, 159)", "operator: aten::softmax | x"]
    assert told == ([] if editor == "emacs" else ["called here", *evidence])

    fix, ignore, fix_all = await actions(client, uri, 4)
    assert fix.title == "Use fixed (about 6.10 ms per step)" and fix.is_preferred
    assert ignore.title == "Ignore slow on this line"
    assert fix_all.kind == "source.fixAll.torchtraceap"
    resolved = fix if fix.edit else await client.code_action_resolve_async(fix)
    assert resolved.edit and resolved.edit.document_changes
    (edit,) = resolved.edit.document_changes
    assert isinstance(edit, lsp.TextDocumentEdit) and edit.text_document.version == 1
    text = edited(SOURCE, [e for e in edit.edits if isinstance(e, lsp.TextEdit)])
    assert text == SOURCE.replace("slow", "fixed")

    change(client, uri, 2, (4, 8, 4, 12, "fixed"))
    model.write_text(text)
    save(client, uri)
    await until(lambda: not client.diagnostics[uri], "the diagnostic to go")
    assert any("fixed, not yet measured" in message.message for message in client.log_messages)
    hover = await client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(3, 5)))
    assert hover and "fixed, not yet measured" in hover.contents.value
    assert not client.messages, "no message boxes"


async def test_traces_present_at_start_and_unopened_files(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "log" / "old.json", report(slow()))
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: shown(client, uri), "the diagnostic of an unopened file")
    assert client.published[-1].version is None
