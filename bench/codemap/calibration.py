"""How often a place with some confidence is right, for each way of finding it.

`python -m bench.codemap.calibration FOLDER` reads what `python -m bench.codemap --traces FOLDER` recorded. Operators
count equally here, as readers meet places one by one; a place that says only which function, call, block or file is
right where the operator ran in it or in what it called. The exit status is 1 if a class of places is more than a tenth
less often right than it says.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from torchtraceap.analyzer.findings import Grain, How, Location
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.statements import Place

from .recorder import MARKS, TRACE
from .score import Verdict, judge
from .strip import Mode, strip
from .truth import read_truth

BOUNDS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)
"""Confidences are grouped between these, the upper one counted in."""
TOLERANCE = 0.1
LEAST = 100
"""Places below which a class says nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """Places found in one way, with confidences of one class."""

    how: How
    grain: Grain
    upper: float
    """Upper bound of the class."""
    count: int
    claimed: float
    """Mean confidence."""
    right: float
    """Share of them that is right."""

    @property
    def is_honest(self) -> bool:
        """Whether they are right about as often as they say, or the class is too small to tell."""
        return self.count < LEAST or self.right >= self.claimed - TOLERANCE


@dataclass(frozen=True, slots=True)
class Judged:
    """A place, and whether it says the truth."""

    location: Location
    is_right: bool


def calibrate(judged: Iterable[Judged]) -> Iterator[Row]:
    """One row for each way, grain and class of confidence, the best way first."""
    groups: dict[tuple[How, Grain, float], list[Judged]] = {}
    for one in judged:
        upper = next(bound for bound in BOUNDS if one.location.confidence <= bound)
        groups.setdefault((one.location.how, one.location.grain, upper), []).append(one)
    order = list(How)
    for (how, grain, upper), group in sorted(groups.items(), key=lambda g: (order.index(g[0][0]), g[0][1], -g[0][2])):
        claimed = sum(one.location.confidence for one in group)
        yield Row(how, grain, upper, len(group), claimed / len(group), sum(one.is_right for one in group) / len(group))


def _is_right(verdict: Verdict, stack: Place | None) -> bool:
    """Whether a place is right. `stack` is the place by the whole recording, whose callers count for what says no line:
    an operator ran inside each function that called its own."""
    if verdict.place is None or verdict.place.location.grain is Grain.LINE:
        return verdict.is_right
    where = verdict.place.location
    above = (stack.location, *stack.callers) if stack is not None else ()
    if where.grain is Grain.FILE:
        return any(one.path == where.path for one in above)
    if where.grain is Grain.CALL:
        return any((one.path, one.line) == (where.path, where.line) for one in above)
    return any((one.path, one.qualname) == (where.path, where.qualname) for one in above)


def judged(folder: Path, modes: Sequence[Mode]) -> Iterator[Judged]:
    """The places of every recording of the folder, stripped in each way."""
    for recording in sorted(path.parent for path in folder.glob(f"*/{MARKS}")):
        workspace = open_workspace(recording / "src")
        every, document = read_truth(recording), msgspec.json.decode((recording / TRACE).read_bytes())
        with tempfile.TemporaryDirectory() as temporary:
            stripped = Path(temporary) / TRACE
            stacks: dict[int, Place | None] = {}
            for mode in (Mode.STACK, *(mode for mode in modes if mode is not Mode.STACK)):
                truths = [truth for truth in every if mode is not Mode.TAG or truth.is_tagged]
                stripped.write_bytes(msgspec.json.encode(strip(document, mode)))
                verdicts, _ = judge(stripped, workspace, truths)
                if mode is Mode.STACK:
                    stacks = {verdict.truth.external_id: verdict.place for verdict in verdicts}
                if mode in modes:
                    right = [_is_right(verdict, stacks.get(verdict.truth.external_id)) for verdict in verdicts]
                    pairs = zip(verdicts, right, strict=True)
                    yield from (Judged(v.place.location, is_right) for v, is_right in pairs if v.place is not None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if it shows false confidence."""
    parser = argparse.ArgumentParser(prog="python -m bench.codemap.calibration", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mode", action="append", choices=[mode.value for mode in Mode], help="only these modes")
    found = parser.parse_args(arguments)
    if not any(found.folder.glob(f"*/{MARKS}")):
        parser.error(f"no recordings in {found.folder}")
    rows = list(calibrate(judged(found.folder, [m for m in Mode if not found.mode or m.value in found.mode])))
    table = Table("found by", "says", "confidence", "places", "claimed", "right", "")
    for row in rows:
        figures = f"{100 * row.claimed:.0f} %", f"{100 * row.right:.1f} %"
        table.add_row(row.how.value, row.grain.value, f"<= {row.upper}", f"{row.count:,}", *figures, _word(row))
    Console(width=100).print(table)
    return 0 if all(row.is_honest for row in rows) else 1


def _word(row: Row) -> str:
    return "few" if row.count < LEAST else "ok" if row.is_honest else "TOO SURE"


if __name__ == "__main__":
    raise SystemExit(main())
