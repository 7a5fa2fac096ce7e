"""The worker process: reads jobs from standard input, writes answers to standard output, and ends with its parent.

It may be killed at any moment. Whatever a job prints goes to standard error, so it cannot damage the messages.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO, Protocol

from .messages import (
    Analyze,
    Answer,
    Failed,
    Index,
    Progress,
    Recheck,
    Reply,
    Request,
    frame,
    read_frame,
    request_decoder,
)

REPORT_EVERY_S = 0.1
COLLECT_AFTER_S = 1.0
"""Garbage is collected in pauses of this length: with syntax trees in memory it takes longer than a recheck."""

OnProgress = Callable[[float, str], None]


class Handlers(Protocol):
    """What a worker can do. Bad input raises `JobError`; anything else raised is a fault of ours."""

    def warm_up(self) -> None:
        """Import what the first job will need."""
        ...

    def analyze(self, job: Analyze, on_progress: OnProgress) -> Answer:
        """Answer `Analyzed`."""
        ...

    def recheck(self, job: Recheck) -> Answer:
        """Answer `Rechecked`."""
        ...

    def index(self, job: Index) -> Answer:
        """Answer `Indexed`."""
        ...


class JobError(Exception):
    """The input is at fault; the message says how."""


def run(handlers: Handlers) -> None:
    """Work until standard input ends."""
    replies = open_replies()
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    handlers.warm_up()
    gc.disable()
    gc.freeze()
    while True:
        send(replies, _answer(handlers, _next(requests), replies))


def open_replies() -> BinaryIO:
    """Where this process sends its messages: standard output, which from now on is standard error for all others."""
    faulthandler.enable()
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return replies


def send(replies: BinaryIO, reply: Reply) -> None:
    """Send one message."""
    replies.write(frame(reply))
    replies.flush()


def _read(stream: BinaryIO, requests: queue.SimpleQueue[Request]) -> None:
    while (body := read_frame(stream)) is not None:
        requests.put(request_decoder.decode(body))
    # The server is gone: nobody waits for the job that may be running.
    os._exit(0)


def _next(requests: queue.SimpleQueue[Request]) -> Request:
    try:
        return requests.get(timeout=COLLECT_AFTER_S)
    except queue.Empty:
        gc.collect()
        return requests.get()


def _answer(handlers: Handlers, job: Request, replies: BinaryIO) -> Answer:
    try:
        if isinstance(job, Analyze):
            return handlers.analyze(job, reporter(job.id, replies))
        if isinstance(job, Index):
            return handlers.index(job)
        if isinstance(job, Recheck):
            return handlers.recheck(job)
        return Failed(job.id, f"this process does not {type(job).__name__.lower()}")
    except JobError as error:
        return Failed(job.id, str(error))
    except Exception as error:  # noqa: BLE001  one job must not take the process down
        return Failed(job.id, f"{type(error).__name__}: {error}", traceback.format_exc())


def reporter(job_id: int, replies: BinaryIO) -> OnProgress:
    """Sends how far a job is, now and then."""
    last_s = 0.0

    def report(fraction: float, stage: str) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= REPORT_EVERY_S:
            last_s = now_s
            send(replies, Progress(job_id, min(max(fraction, 0.0), 1.0), stage))

    return report
