"""A worker process's end."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from torchtraceap.server.messages import Failed, Index
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


ECHOES = """
import sys, time
from torchtraceap.server.messages import Cancel, Failed, frame, request_decoder
obeys = sys.argv[1] == "obeys"
while size := sys.stdin.buffer.read(4):
    job = request_decoder.decode(sys.stdin.buffer.read(int.from_bytes(size, "big")))
    if isinstance(job, Cancel):
        if obeys:
            sys.stdout.buffer.write(frame(Failed(job.id, "stopped")))
    elif job.root == "die":
        sys.exit(77)
    elif job.root == "at once":
        sys.stdout.buffer.write(frame(Failed(job.id, "done")))
    sys.stdout.buffer.flush()
"""
"""Answers some jobs, and others only when it is asked to stop."""


def index(root: str):
    return lambda job_id: Index(job_id, root, (), 1.0, 1.0)


@pytest.mark.parametrize("manner", ["obeys", "stubborn"])
def test_a_process_that_stops_lives_on_and_one_that_does_not_is_killed(manner: str) -> None:
    async def run() -> tuple[bool, str]:
        worker = WorkerProcess("test", (sys.executable, "-c", ECHOES, manner), stops=True)
        await worker.call(index("at once"))
        pid = worker.pid
        job = asyncio.create_task(worker.call(index("never")))
        await asyncio.sleep(0.1)
        job.cancel()
        await asyncio.wait([job])
        assert job.cancelled()
        after = await worker.call(index("at once"))
        assert isinstance(after, Failed)
        is_same = worker.pid == pid
        await worker.close()
        return is_same, after.message

    assert asyncio.run(run()) == (manner == "obeys", "done")


def test_a_death_that_says_why_is_not_tried_again() -> None:
    async def run() -> object:
        deaths = {77: "the memory limit was reached"}
        worker = WorkerProcess("test", (sys.executable, "-c", ECHOES, "obeys"), deaths=deaths)
        answer = await worker.call(index("die"))
        await worker.close()
        return answer

    assert asyncio.run(run()) == Failed(1, "the memory limit was reached")
