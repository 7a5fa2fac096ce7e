"""The worker process may be killed at any moment; jobs can be cancelled; settings and commands apply at once."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from .clients import Client, begin, open_file, until
from .reports import finding, place, report, write_trace

SOURCE = "x = 1\ny = slow(x)\n"


def slow(**changes):
    return finding("slow", place("model.py", 2, 5, 9), **changes)


@pytest.fixture
def model(project: Path) -> Path:
    file = project / "model.py"
    file.write_text(SOURCE)
    return file


def children(parent: int) -> list[int]:
    """Worker processes of a server (Linux)."""
    tasks = Path(f"/proc/{parent}/task")
    return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


def says(client: Client, words: str) -> bool:
    return any(words in message.message for message in client.log_messages)


async def command(client: Client, name: str, *arguments: object):
    return await client.workspace_execute_command_async(lsp.ExecuteCommandParams(f"torchtraceap.{name}", [*arguments]))


async def test_a_killed_worker_comes_back_and_the_job_is_done(client: Client, project: Path, model: Path) -> None:
    await begin(client, project)
    uri = open_file(client, model)
    write_trace(project / "runs" / "a.json", report(slow()), sleep_s=1.5)
    server = client._server.pid  # pyright: ignore[reportOptionalMemberAccess]
    await until(lambda: any(client.progress_reports.values()), "the analysis to begin")
    await asyncio.sleep(0.3)
    for pid in children(server):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: client.diagnostics.get(uri), "the diagnostic all the same")
    for pid in children(server):
        os.kill(pid, signal.SIGKILL)
    write_trace(project / "runs" / "b.json", report(slow()))
    await until(lambda: any("2 of 2" in d.message for d in client.diagnostics[uri]), "the next trace")


async def test_a_trace_that_kills_the_worker_is_left_out(client: Client, project: Path, model: Path) -> None:
    write_trace(project / "runs" / "bad.json", report(), die=True)
    (project / "runs" / "damaged.json").write_text("{ this ends with a bracket }")
    await begin(client, project)
    await until(lambda: says(client, "died 2 times over this"), "the note")
    await until(lambda: says(client, "damaged.json: not a trace"), "the other note")
    write_trace(project / "runs" / "good.json", report(slow()))
    await until(lambda: client.diagnostics.get(model.as_uri()), "the next trace")
    assert not client.messages


async def test_progress_and_cancelling(client: Client, project: Path, model: Path) -> None:
    await begin(client, project)
    write_trace(project / "runs" / "slow.json", report(slow()), sleep_s=60)
    token = await until(lambda: next((t for t, r in client.progress_reports.items() if len(r) > 1), None), "progress")
    begun = client.progress_reports[token][0]
    assert begun.cancellable and begun.title == "Analysing slow.json"
    client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token))
    await until(lambda: says(client, "was cancelled"), "the cancelling", 5)
    assert isinstance(client.progress_reports[token][-1], lsp.WorkDoneProgressEnd)
    write_trace(project / "runs" / "quick.json", report(slow()))
    await until(lambda: client.diagnostics.get(model.as_uri()), "the next trace")


async def test_commands(client: Client, project: Path, model: Path) -> None:
    await begin(client, project)
    uri = model.as_uri()
    assert await command(client, "showReportPath") is None
    elsewhere = write_trace(project / "elsewhere" / "a.json", report(slow()))
    assert await command(client, "analyze", str(elsewhere)) == {"findings": 1}
    assert client.diagnostics[uri]
    path = await command(client, "showReportPath")
    assert Path(path).read_text() == "{}"
    await command(client, "clear")
    await until(lambda: not client.diagnostics[uri], "the clearing")
    await command(client, "restartWorker")
    write_trace(project / "runs" / "b.json", report(slow()))
    await until(lambda: client.diagnostics[uri], "a trace after the restart")
    await command(client, "clear")
    assert await command(client, "analyze") == {"findings": 1}
    await command(client, "analyze", "missing.json")
    assert says(client, "missing.json cannot be analysed")


async def test_settings_apply_without_a_restart(client: Client, project: Path, model: Path) -> None:
    client.set_configuration({"torchtraceap": {"traceFolders": ["out/"], "minSaving": "much"}})
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: says(client, "setting torchtraceap.minSaving is ignored"), "the complaint")
    write_trace(project / "runs" / "a.json", report(slow()))
    trace = write_trace(project / "out" / "deep" / "a.json", report(slow(), finding("lacks", None)))
    await until(lambda: client.diagnostics.get(uri), "the diagnostic")
    assert "recordings" not in client.diagnostics[uri][0].message, "runs/ is not watched"

    async def configure(**settings: object) -> None:
        client.set_configuration({"torchtraceap": {"traceFolders": ["out/"], **settings}})
        client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(None))

    await configure(ignore=["slow"])
    await until(lambda: not client.diagnostics[uri], "slow to be ignored")
    await configure(diagnosticMode="openFilesOnly")
    await until(lambda: not client.diagnostics[trace.as_uri()], "unopened files to be cleared")
    assert not client.diagnostics[uri]
    open_file(client, model)
    await until(lambda: client.diagnostics[uri], "the open file")
    await configure(enable=False)
    await until(lambda: not client.diagnostics[uri], "everything to be off")
    await configure()
    await until(lambda: client.diagnostics[uri], "everything to be on")


async def test_each_folder_has_its_own_settings_and_findings(client: Client, tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
        (root / "model.py").write_text(SOURCE)
        write_trace(root / "runs" / "t.json", report(slow()))
    client.set_configuration({"torchtraceap": {"ignore": ["slow"]}}, scope_uri=roots[1].as_uri())
    await begin(client, roots)
    first, second = ((root / "model.py").as_uri() for root in roots)
    await until(lambda: client.diagnostics.get(first), "the first folder's diagnostic")
    await until(lambda: sum("1 finding" in m.message for m in client.log_messages) == 2, "both analyses")
    assert not client.diagnostics.get(second)
    gone = [lsp.WorkspaceFolder(roots[0].as_uri(), "a")]
    event = lsp.WorkspaceFoldersChangeEvent(added=[], removed=gone)
    client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(event))
    await until(lambda: not client.diagnostics[first], "the closed folder to be cleared")


async def test_a_latin_1_file(client: Client, project: Path) -> None:
    model = project / "model.py"
    model.write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\ny = slow(x)\n".encode("latin-1"))
    write_trace(project / "runs" / "a.json", report(finding("slow", place("model.py", 3, 5, 9))))
    await begin(client, project)
    uri = model.as_uri()
    await until(lambda: client.diagnostics.get(uri), "the diagnostic")
    model.write_bytes("# -*- coding: latin-1 -*-\n\nname = 'é'\ny = slow(x)\n".encode("latin-1"))
    await until(lambda: client.diagnostics[uri][0].range.start.line == 3, "the moved diagnostic")
