"""A progress bar on stderr for what takes over a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ...analyzer.report.printable import printable

DELAY_S = 1.0


class Reporter:
    """Shows what is being done, once it has taken `DELAY_S`; on a stderr that is no terminal, nothing."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def stage(self, description: str) -> None:
        """Begin a part of the work whose length is not known."""
        self._progress.update(self._task, description=printable(description), total=None, completed=0)

    def fraction(self, done: float) -> None:
        """How much of the stage is done, from 0 to 1."""
        self._progress.update(self._task, total=1.0, completed=done)


@contextmanager
def reporting(console: Console) -> Iterator[Reporter]:
    """Yield a reporter; whatever was drawn is gone afterwards. `console` should write to stderr."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = progress.add_task("", total=None)
    timer = threading.Timer(DELAY_S, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield Reporter(progress, task)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
