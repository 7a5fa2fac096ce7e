"""Recording from the editor: what is run, how it ends, and that nothing runs unasked."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

from torchtraceap.server.recorder import command_for, is_script

from . import clients
from .clients import Client, actions, open_file, save, until

SCRIPT = 'import torch\n\n\nif __name__ == "__main__":\n    print("ran")\n'
SLEEPER = """\
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
print("sleeping", flush=True)
time.sleep(60)
if __name__ == "__main__": pass
"""


async def run(client: Client, *arguments: Any, command: str = "torchtraceap.record") -> Any:
    return await client.workspace_execute_command_async(lsp.ExecuteCommandParams(command, list(arguments)))


def logged(client: Client, text: str) -> bool:
    return any(text in message.message for message in client.log_messages)


async def begin(client: Client, project: Path, **more: Any) -> None:
    await clients.begin(client, project, **more)
    await until(lambda: logged(client, "watching"), "the folder to be opened")


async def source_actions(client: Client, uri: str) -> list[lsp.Command]:
    """What "Source Action..." shows. The test client takes an action with a command for a bare command."""
    span = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    context = lsp.CodeActionContext([], only=["source"], trigger_kind=lsp.CodeActionTriggerKind.Invoked)
    params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), span, context)
    answer = await client.text_document_code_action_async(params)
    return [action for action in answer or [] if isinstance(action, lsp.Command)]


def options(**settings: Any) -> dict[str, Any]:
    return {"initialization_options": settings}


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def begin_sleeping(client: Client, project: Path) -> list[int]:
    """Record a program that goes on and on; it and its child."""
    script = project / "train.py"
    script.write_text(SLEEPER)
    await begin(client, project)
    await run(client, open_file(client, script))
    await until(lambda: logged(client, "sleeping"), "the program", 60)
    return [int(pid) for pid in (project / "pids").read_text().split()]


def test_what_counts_as_a_script() -> None:
    assert is_script(SCRIPT)
    assert is_script("import torch\nfor x in data:\n    loss(x).backward()\n    optimizer.step()\n")
    assert not is_script("import torch\n\nclass Net(torch.nn.Module):\n    def step(self):\n        pass\n")
    assert not is_script("for x in y:\n    clock.step()\n")


def test_the_command_is_split_as_a_shell_would_and_run_without_one() -> None:
    assert command_for("python -m 'my pkg' ${file} > out", "a b.py", "") == (
        "python",
        "-m",
        "my pkg",
        "a b.py",
        ">",
        "out",
    )
    assert command_for("", "train.py", SCRIPT) == (sys.executable, "train.py")
    assert command_for("", "net.py", "import torch\n") == ()
    assert command_for("  ", "notes.txt", SCRIPT) == ()
    with pytest.raises(ValueError):
        command_for("python 'train.py", "train.py", "")


async def test_the_action_is_offered_for_scripts(client: Client, project: Path) -> None:
    script, module = project / "train.py", project / "net.py"
    script.write_text(SCRIPT)
    module.write_text("import torch\n")
    await begin(client, project)
    (action,) = await source_actions(client, open_file(client, script))
    assert action.title == "TorchTraceAP: record a trace of this script"
    assert "'torchtraceap.record'" in action.command
    assert await source_actions(client, open_file(client, module)) == []


@pytest.mark.parametrize("code", [3, 7])
async def test_a_program_runs_and_its_output_is_in_the_log(client: Client, project: Path, code: int) -> None:
    script = project / "train.py"
    script.write_text(f'import sys\nif __name__ == "__main__":\n    print("ran in", sys.argv)\n    sys.exit({code})\n')
    await begin(client, project)
    uri = open_file(client, script)
    answer = await run(client, uri)
    assert answer["started"] is True
    assert "already" in (await run(client, uri))["reason"]
    await until(lambda: logged(client, "ran in ['train.py']"), "the output", 60)
    await until(lambda: logged(client, f"exit code {code}"), "the end", 60)
    assert not client.messages, "no message boxes"
    assert (await run(client, uri))["started"] is True, "the next may run"


async def test_cancelling_ends_the_program_and_its_children(client: Client, project: Path) -> None:
    pids = await begin_sleeping(client, project)
    assert all(exists(pid) for pid in pids)
    token = next(iter(reversed(client.progress_reports)))
    client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token))
    await until(lambda: not any(exists(pid) for pid in pids), "their end", 30)
    await until(lambda: logged(client, "was cancelled"), "the word of it", 30)


async def test_the_end_of_the_server_is_that_of_its_runs(client: Client, project: Path) -> None:
    pids = await begin_sleeping(client, project)
    await client.shutdown_async(None)
    client.exit(None)
    client.capabilities = None
    await until(lambda: not any(exists(pid) for pid in pids), "their end", 30)


async def test_the_settings_command_runs_in_the_folder(client: Client, project: Path) -> None:
    (project / "job.py").write_text('import os, sys\nprint("job", os.getcwd(), sys.argv[1:])\n')
    module = project / "net.py"
    module.write_text("import torch\n")
    await begin(client, project, **options(recordCommand=f"{sys.executable} job.py --of ${{file}}"))
    uri = open_file(client, module)
    (action,) = await source_actions(client, uri)
    assert action.title == "TorchTraceAP: record a trace"
    await run(client, uri)
    await until(lambda: logged(client, f"job {project} ['--of', 'net.py']"), "the job", 60)


@pytest.mark.parametrize(
    ("command", "why"), [("no-such-program-here --x", "no such program"), ("python 'train.py", "cannot be read")]
)
async def test_a_command_that_cannot_run_says_why(client: Client, project: Path, command: str, why: str) -> None:
    (project / "net.py").write_text("import torch\n")
    await begin(client, project, **options(recordCommand=command))
    answer = await run(client, (project / "net.py").as_uri())
    assert answer["started"] is False
    assert why in answer["reason"]


async def test_files_that_are_no_scripts_or_nowhere_are_not_run(client: Client, project: Path) -> None:
    (project / "net.py").write_text("import torch\n")
    await begin(client, project)
    assert "no script" in (await run(client, (project / "net.py").as_uri()))["reason"]
    assert "no script" in (await run(client, (project / "gone.py").as_uri()))["reason"]
    assert "no folder" in (await run(client, (project.parent / "other.py").as_uri()))["reason"]
    assert "no script" in (await run(client))["reason"]


async def test_saving_runs_nothing_unless_the_settings_say_so(client: Client, project: Path) -> None:
    script = project / "train.py"
    script.write_text('print("saved and ran")\nif __name__ == "__main__": pass\n')
    await begin(client, project)
    uri = open_file(client, script)
    save(client, uri)
    await actions(client, uri, 0)  # answered after the save
    await asyncio.sleep(1.0)
    assert not logged(client, "recording")


async def test_saving_records_where_it_is_switched_on(client: Client, project: Path) -> None:
    script = project / "train.py"
    script.write_text('print("saved and ran")\nif __name__ == "__main__": pass\n')
    await begin(client, project, **options(recordOnSave=True))
    uri = open_file(client, script)
    assert not logged(client, "recording"), "opening is no saving"
    save(client, uri)
    await until(lambda: logged(client, "saved and ran"), "the run", 60)


@pytest.mark.skipif(shutil.which("true") is None or os.name != "posix", reason="needs POSIX")
async def test_a_program_that_prints_without_end_does_not_fill_the_log(client: Client, project: Path) -> None:
    (project / "net.py").write_text("import torch\n")
    loud = "import sys\nfor i in range(3000): print('line', i)\nsys.stdout.write('x' * 1_000_000)\n"
    (project / "loud.py").write_text(loud)
    await begin(client, project, **options(recordCommand=f"{sys.executable} loud.py"))
    await run(client, (project / "net.py").as_uri())
    await until(lambda: logged(client, "nothing to record"), "the end", 60)
    lines = [m.message for m in client.log_messages if m.message.startswith("record: ")]
    assert len(lines) <= 2001
    assert max(map(len, lines)) < 600


TRAINING = """\
import torch

torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(25):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("folders", [["runs/"], ["elsewhere/"]])
async def test_the_new_trace_is_analysed_whether_its_folder_is_watched_or_not(
    client: Client, project: Path, folders: list[str]
) -> None:
    pytest.importorskip("torch")
    script = project / "train.py"
    script.write_text(TRAINING)
    await begin(client, project, **options(traceFolders=folders))
    assert (await run(client, open_file(client, script)))["started"] is True
    await until(lambda: logged(client, "recorded "), "the end of the recording", 120)
    (trace,) = (project / "runs").rglob("*.json.gz")
    # The worker here reads other files than these, and says so.
    await until(lambda: logged(client, f"{trace}: not a trace"), "the analysis", 30)
    await asyncio.sleep(0.5)
    assert sum(f"{trace}: not a trace" in message.message for message in client.log_messages) == 1
