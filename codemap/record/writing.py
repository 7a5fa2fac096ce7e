"""Writing a recording: the trace and the file beside it, each whole before it has its name."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...analyzer.trace.recording import OperatorTotal, Recording, write_recording
from . import facts
from .exported import Exported, before_first, compressed, own_frames, read_exported, rewritten, step_bounds
from .lines import Calls, FileTable, operator_rows, python_rows, read_tree
from .measuring import Measuring
from .model import ModelSurvey
from .options import RecordOptions, shortened
from .own import OwnFiles
from .phases import Phase, Plan
from .stepping import Moves
from .traced import Rows, rows_by_tracer
from .windows import Totals, Window

SUFFIX = ".pt.trace.json.gz"
_OWN_FOLDER = "/".join(Path(__file__).parts[-3:-1])
_OWN_FILES = tuple(f"{_OWN_FOLDER}/{path.name}" for path in Path(__file__).parent.glob("*.py"))
_MOST_OPERATORS = 500


@dataclass(slots=True)
class Recorded:
    """What a session has so far."""

    trace: str = ""
    """Absolute path once it is written."""
    rank: int = -1
    world_size: int = 1
    first_step: int = 0
    moments_ns: list[int] = field(default_factory=list)
    """Unix time of the start of the first full step that counts, and of the end of each."""
    light_steps: int = 0
    stepped_aside: bool = False
    notes: list[str] = field(default_factory=list)
    python: Rows = field(default_factory=list)
    operators: Rows = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep a sentence for the reader; "" says nothing."""
        if text and text not in self.notes:
            self.notes.append(text)


class Writer:
    """Knows where a process's files go."""

    def __init__(self, options: RecordOptions, folder: str, files: OwnFiles) -> None:
        """`folder`: the working folder when the program began."""
        self._options = options
        self._cwd = folder
        self._folder = Path(folder) / options.folder
        self._files = files
        self._started_ns = time.time_ns()
        self._waiting: tuple[Path, Path] | None = None
        """A trace under its working name, and its name."""

    def write_trace(self, window: Window, moves: Moves, recorded: Recorded, by: str) -> None:
        """Export the full window, and join what only this process knows. The trace gets its name in `write_beside`.

        Raises OSError if the folder cannot be written to.
        """
        with shielded():
            recorded.rank, recorded.world_size = facts.rank_and_world()
            path = self._claimed(recorded.rank)
            part = path.with_name(path.name + ".part")
            try:
                self._fill(part, window, moves, recorded, by)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            self._waiting = part, path
            recorded.trace = str(path)

    def _fill(self, part: Path, window: Window, moves: Moves, recorded: Recorded, by: str) -> None:
        calls = _tree(window)
        window.export(part)
        try:
            exported = read_exported(part)
        except msgspec.DecodeError as error:
            recorded.note(f"the trace is left as the profiler wrote it: {error}")
            part.write_bytes(compressed(part.read_bytes()))
            return
        dropped = own_frames(exported.events, _OWN_FILES)
        bounds = step_bounds(exported, recorded.moments_ns, by)
        if len(bounds) > 1:
            dropped |= before_first(exported.events, bounds[0][0])
        part.write_bytes(compressed(rewritten(exported, dropped, bounds, recorded.first_step)))
        self._join(exported, dropped, calls, moves, recorded)

    def write_beside(
        self, recorded: Recorded, plan: Plan, by: str, survey: ModelSurvey, totals: Totals, measuring: Measuring
    ) -> None:
        """Write, or write again, the file beside the trace; then the trace may appear. Raises OSError."""
        with shielded():
            trace = Path(recorded.trace)
            table = FileTable(self._files)
            recording = self._recording(recorded, plan, by, survey, totals, table)
            recording = measuring.finish(recording, self._waiting[0] if self._waiting else trace)
            for note in (*measuring.notes, *recording.notes):
                recorded.note(note)
            write_recording(trace, msgspec.structs.replace(recording, notes=tuple(recorded.notes)))
            if self._waiting is not None:
                self._waiting[0].replace(self._waiting[1])
                self._waiting = None

    def _join(
        self, exported: Exported, dropped: Collection[int], calls: Calls | None, moves: Moves, recorded: Recorded
    ) -> None:
        """Exact lines for the events of the file."""
        if calls is not None:
            recorded.python = python_rows(calls.python, exported, dropped)
            if recorded.python:
                recorded.operators, problem = operator_rows(calls, moves, self._files)
                recorded.note(problem)
                return
        recorded.python, recorded.operators = rows_by_tracer(exported, dropped, moves, self._files)
        recorded.note("lines are by the line tracer alone: this torch has no event tree that fits its trace")

    def _recording(
        self, recorded: Recorded, plan: Plan, by: str, survey: ModelSurvey, totals: Totals, table: FileTable
    ) -> Recording:
        python, operators = table.columns(recorded.python), table.columns(recorded.operators)
        modules = tuple(survey.recorded(table))
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        torch_version, cuda, cudnn = facts.versions()
        times = plan.times_us
        return Recording(
            version=facts.own_version(),
            command=self._options.command or tuple(sys.argv),
            folder=self._cwd,
            started_ns=self._started_ns,
            python_version=facts.python_version(),
            torch_version=torch_version,
            cuda_version=cuda,
            cudnn_version=cudnn,
            device=facts.device_name(),
            rank=recorded.rank,
            world_size=recorded.world_size,
            precision=facts.precision(survey.autocast),
            environment=facts.environment(),
            steps_by=by,
            warm_up_steps=plan.warm_up_steps,
            plain_step_us=tuple(times[Phase.PLAIN]),
            light_step_us=tuple(times[Phase.LIGHT]),
            full_step_us=tuple(times[Phase.FULL]),
            light_operators=_operators(totals, recorded.light_steps),
            files=table.names,
            sources=facts.source_hashes([*table.names, *([main] if main else [])], self._files),
            python_lines=python,
            operator_lines=operators,
            modules=modules,
        )

    def _claimed(self, rank: int) -> Path:
        """A name that no other process of the run has, taken by creating the file that is written first."""
        self._folder.mkdir(parents=True, exist_ok=True)
        base = self._options.name or default_name()
        ranked = f"{base}.rank{rank}" if rank >= 0 else base
        for name in (ranked, f"{ranked}-{os.getpid()}", f"{ranked}-{os.getpid()}-{time.time_ns()}"):
            path = self._folder / (name + SUFFIX)
            try:
                if not path.exists():
                    path.with_name(path.name + ".part").touch(exist_ok=False)
                    return path
            except FileExistsError:
                continue
        raise FileExistsError(f"{self._folder / ranked}{SUFFIX} exists")


def default_name() -> str:
    """The script's name and the time."""
    stem = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"
    return f"{shortened(stem)}-{time.strftime('%Y%m%d-%H%M%S')}"


@contextmanager
def shielded() -> Iterator[None]:
    """Let Ctrl-C wait until a file is whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is None:  # set by something other than Python
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _tree(window: Window) -> Calls | None:
    """The event tree; None where this torch has none that is understood."""
    try:
        return read_tree(window.results)
    except (AttributeError, TypeError):
        return None


def _operators(totals: Totals, steps: int) -> tuple[OperatorTotal, ...]:
    if not steps:
        return ()
    longest = sorted(totals.self_ns, key=lambda key: -totals.self_ns[key])[:_MOST_OPERATORS]
    return tuple(
        OperatorTotal(
            name, on_device, totals.calls[name, on_device] / steps, totals.self_ns[name, on_device] / steps / 1e3
        )
        for name, on_device in longest
    )
