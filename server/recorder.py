"""Recording runs that the editor asked for: `torchtraceap record` in the background, one for each folder."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..codemap.record.options import DEFAULT_FOLDER
from .client import Client, Report
from .engine import Engine
from .folders import Folder

RECORD = (sys.executable, "-m", "torchtraceap.server.cli", "record")
FILE = "${file}"
"""Stands for the file's path in the setting `recordCommand`."""
END_WITHIN_S = 10.0
"""What a cancelled program has to write what there is, before it is killed."""
CHUNK_BYTES = 1 << 14
MOST_LINES = 2000
"""Lines of output that go to the log; a program that prints on and on must not fill the editor."""
LONGEST_LINE = 500
SHOWN = 80

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_SCRIPT = re.compile(r"""^if\s+__name__\s*==\s*['"]__main__['"]""", re.MULTILINE)
_TRAINS = re.compile(r"^(?!\s*def\b)[^#\n]*\.(?:backward|step)\(", re.MULTILINE)
_LINE_END = re.compile(rb"[\r\n]+")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Run:
    """One run that is going on."""

    folder: Folder
    command: tuple[str, ...]
    started_ns: int = field(default_factory=time.time_ns)
    process: asyncio.subprocess.Process | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    lines: int = 0


def is_script(text: str) -> bool:
    """Whether a file can be recorded by running it: it says what to do as a program, or trains where it stands."""
    return bool(_SCRIPT.search(text)) or bool(_TRAINS.search(text) and "torch" in text)


def command_for(setting: str, path: str, text: str) -> tuple[str, ...]:
    """What to run for a file (its path from the folder): the setting's command, else the file if it is a script.

    () if there is nothing to run. Raises ValueError for a setting that is no command line.
    """
    if setting.strip():
        return tuple(word.replace(FILE, path) for word in shlex.split(setting))
    return (_python(), path) if path.endswith(".py") and is_script(text) else ()


def _python() -> str:
    """The Python to run scripts with: ours if it has torch, else the one on the path."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python") or sys.executable


class Recorder:
    """Starts, follows and ends the runs. Nothing runs unless somebody asks for it by an action, command or setting."""

    def __init__(self, client: Client, engine: Engine, record: Sequence[str] = RECORD) -> None:
        self._client = client
        self._engine = engine
        self._record = tuple(record)
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def is_running(self, folder: Folder) -> bool:
        """Whether a run of this folder is going on."""
        return folder.uri in self._runs

    def start(self, folder: Folder, command: Sequence[str]) -> str:
        """Record a command, in the background. "" if it was started, else why not."""
        if self.is_running(folder):
            return "a recording of this folder is running already"
        if shutil.which(command[0], path=_search_path(folder)) is None:
            return f"{command[0]}: no such program"
        run = self._runs[folder.uri] = Run(folder, tuple(command))
        task = asyncio.create_task(self._follow(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ""

    def cancel(self, folder: Folder) -> None:
        """End the run of a folder, and whatever it has started. What was recorded until then is written."""
        if (run := self._runs.get(folder.uri)) is not None:
            run.cancelled.set()
            _signal(run, signal.SIGTERM)

    async def idle(self) -> None:
        """Wait until nothing runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """End all runs at once."""
        for run in self._runs.values():
            run.cancelled.set()
            _signal(run, _KILL)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=END_WITHIN_S)

    async def _follow(self, run: Run) -> None:
        shown = shlex.join(run.command)
        log.info("recording %s in %s", shown, run.folder.root)
        try:
            async with self._client.show_progress(
                f"Recording {shown[:SHOWN]}", lambda: self.cancel(run.folder)
            ) as show:
                code = await self._run(run, show)
        except OSError as error:
            log.error("recording could not be started: %s", error)
            return
        finally:
            self._runs.pop(run.folder.uri, None)
        written = _traces_of(run)
        self._tell(run, code, bool(written))
        self._take_up(run.folder, written)

    async def _run(self, run: Run, show: Report) -> int:
        pipe = asyncio.subprocess.PIPE
        if run.cancelled.is_set():
            return 0
        run.process = process = await asyncio.create_subprocess_exec(
            *self._record, "-o", DEFAULT_FOLDER, "--", *run.command,
            cwd=run.folder.root, env={**os.environ, "PYTHONUNBUFFERED": "1"}, stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        if run.cancelled.is_set():
            _signal(run, signal.SIGTERM)
        reading = asyncio.create_task(self._read(run, process, show))
        ending = asyncio.create_task(self._end_if_cancelled(run, process))
        try:
            return await process.wait()
        finally:
            ending.cancel()
            if run.cancelled.is_set():
                _signal(run, _KILL)  # those that did not end with the program
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(reading, END_WITHIN_S)

    async def _end_if_cancelled(self, run: Run, process: asyncio.subprocess.Process) -> None:
        """Kill a cancelled program that does not end by itself."""
        await run.cancelled.wait()
        await asyncio.sleep(END_WITHIN_S)
        if process.returncode is None:
            _signal(run, _KILL)

    async def _read(self, run: Run, process: asyncio.subprocess.Process, show: Report) -> None:
        """The program's output, to the log; its last line, to the progress."""
        assert process.stdout is not None
        rest = b""
        while chunk := await process.stdout.read(CHUNK_BYTES):
            *lines, rest = _LINE_END.split(rest + chunk)
            rest = rest[-LONGEST_LINE:]
            for line in lines:
                self._log(run, line)
            if lines and (last := _shown(lines[-1])):
                show(0.0, last[:SHOWN])
        self._log(run, rest)

    def _log(self, run: Run, line: bytes) -> None:
        text = _shown(line)
        if not text:
            return
        run.lines += 1
        if run.lines <= MOST_LINES:
            log.info("record: %s", text)
        elif run.lines == MOST_LINES + 1:
            log.info("record: ... (more than %d lines; the rest is left out)", MOST_LINES)

    def _tell(self, run: Run, code: int, is_recorded: bool) -> None:
        shown = shlex.join(run.command)
        if run.cancelled.is_set():
            log.info("recording of %s was cancelled", shown)
        elif code:
            log.warning("%s ended with exit code %d", shown, code)
        elif is_recorded:
            log.info("recorded %s", shown)
        else:
            log.warning("%s ran, and there was nothing to record", shown)

    def _take_up(self, folder: Folder, written: Iterable[tuple[Path, int]]) -> None:
        """Analyse the new traces if nobody watches the folder that they are in."""
        from .watcher import TraceFolders

        if folder not in self._engine.folders or not folder.settings.enable:
            return
        watched = TraceFolders(folder.root, folder.settings.trace_folders)
        for trace, recorded_ns in written:
            if not watched.is_trace(trace):
                self._engine.enqueue(folder, trace, recorded_ns)


def _traces_of(run: Run) -> list[tuple[Path, int]]:
    """The traces that a run has written, and when."""
    from .watcher import TraceFolders

    root, found = run.folder.root, []
    for trace in TraceFolders(root, (f"{DEFAULT_FOLDER}/",)).traces_below(root / DEFAULT_FOLDER):
        try:
            recorded_ns = trace.stat().st_mtime_ns
        except OSError:
            continue
        if recorded_ns >= run.started_ns:
            found.append((trace, recorded_ns))
    return found


def _shown(line: bytes) -> str:
    """A line of output as the log may show it."""
    text = line[:LONGEST_LINE].decode("utf-8", "replace")
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _search_path(folder: Folder) -> str:
    """Where programs are looked for: as the shell does, from the folder."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(str(folder.root / entry) for entry in entries)


def _signal(run: Run, number: int) -> None:
    """Send a signal to the program and everything that it started."""
    process = run.process
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.terminate()
