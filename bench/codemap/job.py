"""Recording and scoring one program, in a process of its own."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .programs import Program
from .recorder import MARKS, record
from .score import Scored, score
from .strip import Mode

_STAMP = "stamp"


@dataclass(frozen=True, slots=True)
class Job:
    """What one process does."""

    program: Program
    folder: Path
    """Where the recording goes; the program is copied to `src` in it, a workspace of its own."""
    modes: tuple[Mode, ...]

    def is_recorded(self) -> bool:
        """Whether the folder holds a recording of the program as it is now."""
        stamp = self.folder / _STAMP
        return stamp.is_file() and stamp.read_text("utf-8") == self.stamp()

    def stamp(self) -> str:
        """A hash over the program and what records it."""
        recorders = [Path(__file__).with_name(name) for name in ("clock.py", "recorder.py")]
        files = [*self.program.files, *recorders]
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one program."""

    name: str
    scored: Mapping[Mode, Scored]
    error: str = ""
    is_held_out: bool = False


def run(job: Job) -> Outcome:
    """Record the program, unless that is done already, and score each mode."""
    program, root = job.program, job.folder / "src"
    try:
        if not (job.folder / MARKS).exists():
            _copy(program.source, root)
            record(root / program.entry, job.folder)
            (job.folder / _STAMP).write_text(job.stamp(), "utf-8")
        scored = score(job.folder, root, job.modes)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a program may do anything; the others are still scored
        return Outcome(program.name, {}, f"{type(error).__name__}: {error}", program.is_held_out)
    return Outcome(program.name, scored, is_held_out=program.is_held_out)


def _copy(source: Path, root: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, root, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        root.mkdir(parents=True)
        shutil.copy(source, root)
