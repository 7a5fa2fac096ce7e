"""Recording a part of a program from within: `with recording(): ...`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .options import DEFAULT_FOLDER, RecordOptions, name_problem
from .reports import overhead

if TYPE_CHECKING:
    from .session import Session


class Run:
    """A recording that goes on, or is over."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def trace(self) -> Path | None:
        """The trace; None as long as none is written."""
        trace = self._session.report().trace
        return Path(trace) if trace else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be recorded, and why."""
        return self._session.report().notes

    @property
    def overhead(self) -> str:
        """What the profiler cost: the medians of plain, light and full steps in a sentence; "" if not known."""
        return overhead(self._session.report())


@contextmanager
def recording(
    folder: str | os.PathLike[str] = DEFAULT_FOLDER,
    *,
    name: str = "",
    iterations: int = 100,
    full: int = 4,
    warm_up: int = 5,
    attention: bool = False,
    counters: bool = False,
    ncu: str | os.PathLike[str] = "",
) -> Iterator[Run]:
    """Record the steps of the block, as `torchtraceap record` does those of a program.

    The model may be built before or inside; what is built inside is also known by its lines. The options are those of
    the command. Raises OSError if nothing can be written to `folder`, ValueError if `name` is no plain file name.
    """
    if reason := name_problem(name):
        raise ValueError(reason)
    importlib.import_module("torch")
    from .session import Session  # who only wants the options, as the command and the server do, does without

    Path(folder).mkdir(parents=True, exist_ok=True)
    options = RecordOptions(
        folder=os.fspath(folder),
        name=name,
        iterations=iterations,
        full=full,
        warm_up=warm_up,
        attention=attention,
        counters=counters,
        ncu=os.fspath(ncu),
    )
    session = Session(options, os.getcwd())  # noqa: PTH109  as a string, however it is written
    session.install()
    try:
        yield Run(session)
    finally:
        session.finish()
