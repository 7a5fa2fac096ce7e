"""Several workspace folders, and folders behind links."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from lsprotocol import types as lsp

from torchtraceap.server.folders import Folders

from .clients import Client, begin, open_file, until
from .reports import finding, place, report, write_trace

SOURCE = "import torch\n\n\ndef forward(x):\n    y = slow(x)\n    return y\n"


def slow():
    return report(finding("slow", place("model.py", 5, 9, 13, "forward")))


@pytest.fixture
def roots(project: Path) -> tuple[Path, Path]:
    runs, code = project / "training", project / "library"
    for root in (runs, code):
        root.mkdir()
    (code / "model.py").write_text(SOURCE)
    return runs, code


async def test_a_trace_of_one_folder_that_ran_files_of_another(client: Client, roots: tuple[Path, Path]) -> None:
    runs, code = roots
    trace = runs / "runs" / "a.json"
    write_trace(trace, report(), elsewhere=msgspec.to_builtins(slow()))
    await begin(client, [runs, code])
    uri = (code / "model.py").as_uri()
    await until(lambda: client.diagnostics.get(uri), "the diagnostic in the other folder")
    assert [d.range.start.line for d in client.diagnostics[uri]] == [4]
    trace.unlink()
    await until(lambda: not client.diagnostics[uri], "the diagnostic to go with the trace")


async def test_a_file_that_is_gone_makes_its_recordings_be_placed_again(
    client: Client, roots: tuple[Path, Path]
) -> None:
    """It may have been renamed."""
    _, code = roots
    write_trace(code / "runs" / "a.json", slow())
    await begin(client, code)
    uri = (code / "model.py").as_uri()
    await until(lambda: client.diagnostics.get(uri), "the diagnostic")
    before = sum("analysed in" in told.message for told in client.log_messages)
    (code / "model.py").rename(code / "net.py")
    await until(lambda: sum("analysed in" in told.message for told in client.log_messages) > before, "the analysis")


async def test_a_folder_that_is_a_link_shows_findings_under_its_own_name(
    client: Client, project: Path, roots: tuple[Path, Path]
) -> None:
    _, code = roots
    link = project / "link"
    link.symlink_to(code, target_is_directory=True)
    write_trace(code / "runs" / "a.json", slow())
    await begin(client, link)
    uri = open_file(client, link / "model.py")
    await until(lambda: client.diagnostics.get(uri), "the diagnostic under the link's name")
    assert client.diagnostics[uri][0].severity == lsp.DiagnosticSeverity.Warning
    assert not client.diagnostics.get((code / "model.py").as_uri())


def test_files_belong_to_the_innermost_folder_also_through_links(tmp_path: Path) -> None:
    outer, inner, link, out = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "link", tmp_path / "out"
    for folder in (inner, out):
        folder.mkdir(parents=True)
    link.symlink_to(inner, target_is_directory=True)
    (outer / "leads_out").symlink_to(out, target_is_directory=True)
    folders = Folders()
    first, second = folders.add(outer.as_uri()), folders.add(inner.as_uri())
    assert first is not None and second is not None and folders.add(inner.as_uri()) is None
    assert folders.locate_file(outer / "a.py") == (first, "a.py")
    assert folders.locate_file(inner / "b.py") == (second, "b.py")
    assert folders.locate_file(link / "b.py") == (second, "b.py")
    assert folders.locate_file(out / "c.py") is None
