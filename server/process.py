"""The server's side of a worker process: started when needed, restarted when it dies, killed to cancel."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from .messages import LENGTH_BYTES, Answer, Cancel, Failed, Progress, Reply, Request, frame, reply_decoder

ATTEMPTS = 2
"""A job during which the process dies is tried once more: it may have been killed from outside."""
STREAM_LIMIT_BYTES = 1 << 20
END_WITHIN_S = 2.0
"""A killed process is not waited for longer, should something else hold its pipes open."""
STOP_WITHIN_S = 1.0
"""A process that was asked to stop a job and has not after so long is killed."""

log = logging.getLogger(__name__)


class WorkerProcess:
    """One worker process, one job at a time. To cancel a job, cancel the task that awaits `call`.

    That kills the process, unless it `stops`: then it is asked to, and keeps what it holds. `deaths` says of exit
    codes what they mean, where trying once more would not help.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, stops: bool = False, deaths: Mapping[int, str] | None = None
    ) -> None:
        self.name = name
        self._command = tuple(command)
        self._stops = stops
        self._deaths = dict(deaths or {})
        self._process: asyncio.subprocess.Process | None = None
        self._stderr: asyncio.Task[None] | None = None
        self._killed: asyncio.subprocess.Process | None = None
        self._started: list[asyncio.subprocess.Process] = []
        """What must have ended before the event loop does."""
        self._turn = asyncio.Lock()
        self._is_closed = False
        self._ids = itertools.count(1)

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Start the process unless it runs, so that the first job need not wait for its imports."""
        async with self._turn:
            if not self._is_closed:
                await self._running()

    async def call(
        self, job: Callable[[int], Request], on_progress: Callable[[Progress], None] | None = None
    ) -> Answer:
        """Do one job, given as a function from its id, and answer `Failed` if the process dies over it again."""
        async with self._turn:
            for attempt in range(ATTEMPTS):
                if self._is_closed:
                    break
                process = await self._running()
                request = job(next(self._ids))
                talk = asyncio.ensure_future(self._converse(process, request, on_progress))
                try:
                    return await asyncio.shield(talk)
                except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError) as error:
                    self.kill()
                    code = await process.wait()
                    if code in self._deaths:
                        return Failed(request.id, self._deaths[code])
                    log.warning(
                        "the %s worker died (exit code %s, %s), attempt %d", self.name, code, error, attempt + 1
                    )
                except asyncio.CancelledError:
                    await self._give_up(process, request.id, talk)
                    raise
        return Failed(0, f"the {self.name} worker process died {ATTEMPTS} times over this; it is left out")

    def kill(self) -> None:
        """End the process at once. The next job starts another."""
        self._end_process()
        self._process = None

    async def _give_up(self, process: asyncio.subprocess.Process, job_id: int, talk: asyncio.Future[Answer]) -> None:
        """End a job that nobody waits for any more."""
        try:
            if self._stops and process.stdin is not None:
                process.stdin.write(frame(Cancel(job_id)))
                await asyncio.wait([talk], timeout=STOP_WITHIN_S)
        finally:
            if not talk.done() or talk.cancelled() or talk.exception() is not None:
                self.kill()
            talk.cancel()

    def _end_process(self) -> None:
        process = self._process
        # Killing one that has just died takes its exit code from under asyncio, which then complains: not twice.
        if process is not None and process.returncode is None and process is not self._killed:
            self._killed = process
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def close(self) -> None:
        """End the process for good and wait for it, and for those that were killed before it."""
        self._is_closed = True
        self._end_process()
        async with self._turn:  # one that was being started just now has been by the time we get here
            self.kill()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.gather(*map(_ended, self._started)), END_WITHIN_S)

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, stderr=pipe, limit=STREAM_LIMIT_BYTES
            )
            self._stderr = asyncio.create_task(self._log_stderr(self._process))
            self._started = [one for one in self._started if one.returncode is None]
            self._started.append(self._process)
            log.debug("%s worker started, process %d", self.name, self._process.pid)
        return self._process

    async def _converse(
        self, process: asyncio.subprocess.Process, job: Request, on_progress: Callable[[Progress], None] | None
    ) -> Answer:
        assert process.stdin is not None
        process.stdin.write(frame(job))
        await process.stdin.drain()
        while True:
            reply = await _receive(process)
            if reply.id != job.id:
                continue
            if not isinstance(reply, Progress):
                return reply
            if on_progress is not None:
                on_progress(reply)

    async def _log_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            log.warning("%s worker: %s", self.name, line.decode("utf-8", "replace").rstrip())


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for a process and for the ends of its pipes: asyncio complains of one that outlives the event loop."""
    await process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(RuntimeError):  # somebody reads it to its end
                await stream.read()


async def _receive(process: asyncio.subprocess.Process) -> Reply:
    assert process.stdout is not None
    size = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
    return reply_decoder.decode(await process.stdout.readexactly(size))
