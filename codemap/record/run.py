"""The start of a recorded process: called by the `sitecustomize` that `torchtraceap record` puts on the path.

Nothing is imported for the program, and torch only when the program does; the rest of the recorder comes with it, so
that a Python without torch starts as quickly as it can. From outside the process looks as it would alone: its path, its
environment for whatever it starts, another `sitecustomize`, its signals and exit code.
"""

from __future__ import annotations

import atexit
import importlib
import multiprocessing.process
import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

from .imports import after_import
from .options import VARIABLE, RecordOptions, decode
from .reports import Report, leave

if TYPE_CHECKING:
    from .session import Session


def start(bootstrap: str) -> None:
    """Record this process, as the environment says. `bootstrap`: the folder of the `sitecustomize` that calls this."""
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != os.path.realpath(bootstrap)]
    try:
        _load_other_sitecustomize()
    finally:  # Python goes on without a `sitecustomize` that fails, and so does the recorder
        options = decode(os.environ.get(VARIABLE, ""))
        if options is not None:
            leave(Report(os.getpid()), options.reports)
            folder = os.getcwd()  # noqa: PTH109  as a string, however it is written
            after_import("torch", lambda: record(options, folder))


def record(options: RecordOptions, folder: str) -> None:
    """Begin to record; at the end of the process write what there is. torch has been imported."""
    from .session import Session

    session = Session(options, folder, lambda report: leave(report, options.reports))
    session.install()
    atexit.register(session.finish)
    _write_in_children(session)
    _write_when_terminated(session)


def _write_in_children(session: Session) -> None:
    """Children of multiprocessing may be the ranks of a job. Forked ones end without running what atexit holds."""
    util = importlib.import_module("multiprocessing.util")
    if multiprocessing.process.parent_process() is not None:
        util.Finalize(None, session.finish, exitpriority=100)
    if hasattr(os, "fork"):
        util.register_after_fork(session, lambda _: util.Finalize(None, session.finish, exitpriority=100))


def _write_when_terminated(session: Session) -> None:
    """On SIGTERM, unless the program has its own way with it; the process then ends by that signal all the same."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return

    def on_terminate(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        session.finish_and(lambda: os.kill(os.getpid(), number))

    signal.signal(signal.SIGTERM, on_terminate)


def _load_other_sitecustomize() -> None:
    """Run the `sitecustomize` that Python would have run, if there is one."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours
