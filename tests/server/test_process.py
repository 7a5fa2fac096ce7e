"""A worker process's end."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from torchtraceap.server.process import WorkerProcess

SLEEPS = (sys.executable, "-S", "-c", "import time; time.sleep(30)")


def test_a_process_is_killed_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A second kill may find it dead already and reap it before asyncio does, which then complains."""
    killed: list[int] = []
    kill = asyncio.subprocess.Process.kill
    monkeypatch.setattr(asyncio.subprocess.Process, "kill", lambda self: (killed.append(self.pid), kill(self))[1])

    async def run() -> int | None:
        worker = WorkerProcess("test", SLEEPS)
        await worker.start()
        pid = worker.pid
        await worker.close()
        assert worker.pid is None
        return pid

    with caplog.at_level(logging.WARNING, logger="asyncio"):
        pid = asyncio.run(run())
    assert killed == [pid]
    assert not caplog.records


def test_a_process_that_was_killed_before_is_waited_for_at_the_end() -> None:
    async def run() -> list[int | None]:
        worker = WorkerProcess("test", SLEEPS)
        await worker.start()
        process = worker._process
        assert process is not None
        worker.kill()
        await worker.close()
        return [process.returncode]

    assert asyncio.run(run()) != [None]
