"""The main job with the real analysis, under the capabilities of VS Code and Neovim."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig

from .clients import Client, actions, begin, change_whole, edited, make_client, open_file, save, until
from .projects import FAULTS

SERVE = [sys.executable, "-c", "from torchtraceap.server.cli import main; main()", "serve"]


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVE, client_factory=make_client))
async def real_client(lsp_client: Client):
    yield lsp_client
    if lsp_client.capabilities is not None:
        await lsp_client.shutdown_session()


@pytest.mark.parametrize(
    ("editor", "name"), [("visual-studio-code", "posekit"), ("neovim", "resnet_birds"), ("neovim", "leaves")]
)
async def test_trace_lands_fix_applied_diagnostic_gone(
    real_client: Client, project: Path, editor: str, name: str
) -> None:
    fault = FAULTS[name]()
    file = fault.copied_to(project)
    await begin(real_client, project, editor)
    uri = open_file(real_client, file)
    (project / "runs").mkdir()
    (project / "runs" / "first.pt.trace.json.gz").write_bytes(fault.trace.read_bytes())

    def found() -> list[lsp.Diagnostic]:
        return [d for d in real_client.diagnostics.get(uri, ()) if d.code == fault.slug]

    await until(found, "the diagnostic", 60)
    (diagnostic,) = found()
    line = diagnostic.range.start.line
    assert line + 1 in fault.lines
    fix = next(a for a in await actions(real_client, uri, line) if a.is_preferred)
    resolved = await real_client.code_action_resolve_async(fix)
    assert resolved.edit and resolved.edit.document_changes
    texts = {path.as_uri(): path for path in project.rglob("*.py")}
    for changed in resolved.edit.document_changes:
        assert isinstance(changed, lsp.TextDocumentEdit)
        path = texts[changed.text_document.uri]
        path.write_text(edited(path.read_text(), [e for e in changed.edits if isinstance(e, lsp.TextEdit)]))
        compile(path.read_text(), str(path), "exec")
    change_whole(real_client, uri, 2, file.read_text())
    save(real_client, uri)
    await until(lambda: not found(), "the diagnostic to go", 30)
    assert not real_client.messages
