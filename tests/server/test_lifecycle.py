"""Beginnings, ends and accidents: exit codes, lost clients, malformed messages."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from torchtraceap.server import VERSION

from .clients import FABRICATED
from .raw import Raw


@pytest.fixture
def raw():
    client = Raw()
    yield client
    client.process.kill()
    client.process.wait()


@pytest.mark.parametrize(("says_shutdown", "code"), [(True, 0), (False, 1)])
def test_exit(raw: Raw, project: Path, says_shutdown: bool, code: int) -> None:
    raw.initialize(project)
    if says_shutdown:
        raw.send(id=2, method="shutdown")
        assert raw.answer_to(2)["result"] is None
    raw.send(method="exit")
    assert raw.ends() == code


def test_end_of_input_is_the_end(raw: Raw, project: Path) -> None:
    raw.initialize(project)
    raw.stdin.close()
    assert raw.process.wait(20) == 1


def test_exit_before_anything(raw: Raw) -> None:
    raw.send(method="exit")
    assert raw.ends() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the end of input tells there")
def test_the_death_of_the_editor_is_the_end_though_input_stays_open(raw: Raw, project: Path) -> None:
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    params = {"processId": editor.pid, "rootUri": project.as_uri(), "capabilities": {}}
    raw.send(id=1, method="initialize", params=params)
    raw.answer_to(1)
    raw.send(method="initialized", params={})
    assert raw.process.poll() is None
    editor.kill()
    editor.wait()
    assert raw.process.wait(20) == 1


def test_malformed_messages_are_answered_and_survived(raw: Raw, project: Path) -> None:
    raw.initialize(project)
    raw.send_bytes(b"{ this is no JSON")
    raw.send(id=7, method="textDocument/hover", params={"textDocument": 3})
    assert "error" in raw.answer_to(7), "a client left without an answer waits for ever"
    raw.send(method="textDocument/didChange", params={"textDocument": {"uri": 1}})
    unknown = {"textDocument": {"uri": "file:///not/open.py", "version": 1}, "contentChanges": [{"text": ""}]}
    raw.send(method="textDocument/didChange", params=unknown)
    raw.send(id=8, method="workspace/executeCommand", params={"command": "no.such.command"})
    error = raw.answer_to(8)["error"]
    assert error.get("data") is None and "Traceback" not in str(error)
    raw.send(id=9, method="no/such/method", params={})
    assert "error" in raw.answer_to(9)
    raw.send(id=10, method="codeAction/resolve", params={"title": "x", "data": {"uri": "file:///elsewhere.py"}})
    assert raw.answer_to(10)["result"] == {"title": "x", "data": {"uri": "file:///elsewhere.py"}}
    raw.send(id=11, method="shutdown")
    assert raw.answer_to(11)["result"] is None
    raw.send(method="exit")
    raw.process.wait(20)
    assert not [m for m in raw.seen if m.get("method") == "window/showMessage"], "no message boxes"


def test_documents_that_are_no_files(raw: Raw, project: Path) -> None:
    raw.initialize(project)
    for number, uri in enumerate(["untitled:Untitled-1", "vscode-notebook-cell:/a/b.ipynb#W0", "git:/a.py?x", "x"]):
        item = {"uri": uri, "languageId": "python", "version": 1, "text": "x = 1\n"}
        identifier = {"uri": uri, "version": 2}
        raw.send(method="textDocument/didOpen", params={"textDocument": item})
        raw.send(
            method="textDocument/didChange", params={"textDocument": identifier, "contentChanges": [{"text": "y"}]}
        )
        raw.send(method="textDocument/didSave", params={"textDocument": {"uri": uri}})
        at = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
        raw.send(id=20 + number, method="textDocument/hover", params=at)
        answer = raw.answer_to(20 + number)
        assert answer.get("result") is None and "error" not in answer
        raw.send(method="textDocument/didClose", params={"textDocument": {"uri": uri}})
    raw.send(method="exit")
    raw.ends()
    logged = [m["params"] for m in raw.seen if m.get("method") == "window/logMessage"]
    assert not [entry for entry in logged if entry["type"] <= 2], logged


def test_a_silent_client_is_not_waited_for_long(raw: Raw, project: Path) -> None:
    """It says that it has settings and can show progress, and never answers."""
    from .reports import finding, place, report, write_trace

    (project / "model.py").write_text("y = slow(x)\n")
    write_trace(project / "runs" / "a.json", report(finding("slow", place("model.py", 1, 5, 9))))
    raw.initialize(project, workspace={"configuration": True}, window={"workDoneProgress": True})
    started_s = time.monotonic()
    while True:
        message = raw.receive()
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["diagnostics"]:
            break
    assert time.monotonic() - started_s < 20
    raw.send(id=2, method="shutdown")
    raw.answer_to(2)
    raw.send(method="exit")
    assert raw.ends() == 0


def test_nothing_heavy_is_imported_before_the_client_is_answered() -> None:
    heavy = (
        "torch", "numpy", "libcst", "sklearn", "pathspec", "watchdog", "onnxruntime",
        "torchtraceap.codemap.record.session",
    )  # fmt: skip
    code = f"import sys, torchtraceap.server.app; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_packages() -> None:
    assert metadata.version("torchtraceap") == VERSION


def test_the_fabricated_server_is_the_real_one_but_for_its_worker() -> None:
    assert "from torchtraceap.server.app import serve" in Path(FABRICATED[1]).read_text()
