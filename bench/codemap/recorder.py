"""Records one program in this process, as its author would, with the line clock running: `record(...)`.

A program that has a profiler keeps it: when it records and what it wraps is the program's own doing. Only where the
trace goes, and that stacks and shapes are recorded, is decided here. One without is recorded from start to end.
"""

from __future__ import annotations

import contextlib
import os
import random
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import profiler as torch_profiler

from .clock import LineClock

TRACE = "trace.json"
MARKS = "marks.json"


def record(program: Path, out: Path) -> None:
    """Run `program` and write its trace and the clock's marks to the folder `out`."""
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    clock = LineClock(program.parent)
    sys.argv = [str(program)]
    sys.path.insert(0, str(program.parent))
    os.chdir(program.parent)
    with _silent(), _profilers_writing_to(out / TRACE, clock):
        clock.install()
        try:
            if any("torch.profiler" in file.read_text("utf-8") for file in program.parent.rglob("*.py")):
                runpy.run_path(str(program), run_name="__main__")
            else:
                with torch_profiler.profile():
                    runpy.run_path(str(program), run_name="__main__")
        finally:
            clock.remove()
    (out / MARKS).write_bytes(msgspec.json.encode(clock.marks))


@contextlib.contextmanager
def _profilers_writing_to(path: Path, clock: LineClock) -> Iterator[None]:
    original = torch_profiler.profile

    class Recorded(original):
        """The program's profiler, made to record all and to write where the bench reads."""

        def __init__(self, *arguments: Any, **named: Any) -> None:
            named |= {"with_stack": True, "record_shapes": True, "profile_memory": False}
            named["on_trace_ready"] = _write
            super().__init__(*arguments, **named)

        def start_trace(self) -> None:
            super().start_trace()
            clock.is_on = True

        def stop_trace(self) -> None:
            clock.is_on = False
            super().stop_trace()

        def export_chrome_trace(self, *arguments: Any, **named: Any) -> None:
            """Nothing: the bench has written the trace."""

    def _write(profiler: Any) -> None:
        original.export_chrome_trace(profiler, str(path))

    torch_profiler.profile = torch.profiler.profile = Recorded
    try:
        yield
    finally:
        torch_profiler.profile = torch.profiler.profile = original


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What programs and the profiler's library print goes nowhere."""
    with Path(os.devnull).open("w") as nowhere:
        kept = os.dup(1), os.dup(2)
        sys.stdout.flush()
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        try:
            with contextlib.redirect_stdout(nowhere):
                yield
        finally:
            for number, copy in enumerate(kept, start=1):
                os.dup2(copy, number)
                os.close(copy)
