"""How many of a recording's operators are placed where they were run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from torchtraceap.analyzer.findings import Grain
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import NONE, Category
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.source import SourceFile
from torchtraceap.codemap.statements import Place, statement_at
from torchtraceap.codemap.workspace import Workspace

from .recorder import TRACE
from .strip import Mode, strip
from .truth import Truth, read_truth

_INNER = re.compile(r"(?:\.?<(?:listcomp|setcomp|dictcomp|genexpr)>)+$")


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the operators' own time, in per cent."""

    line_pct: float
    """The right statement was named."""
    function_pct: float
    """The right function, whether or not with a line."""
    exact_pct: float
    """The right physical line, in a statement of several."""
    none_pct: float
    """No line was named."""
    wrong_pct: float
    """A line was named, and another statement ran."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A group of operators that were not placed right: by what ran them, and where they were put."""

    share_pct: float
    count: int
    names: tuple[str, ...]
    truth: str
    found: str


@dataclass(frozen=True, slots=True)
class Scored:
    """One recording in one mode."""

    shares: Shares | None
    """None where nothing of it counts (no ranges of its own, in the mode that is about them)."""
    misses: tuple[Miss, ...]
    cpu_s: float
    """What placing all operators took."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One operator's place against its truth."""

    truth: Truth
    place: Place | None
    has_line: bool
    is_right: bool
    is_exact: bool
    is_function: bool


def score(recording: Path, root: Path, modes: Iterable[Mode]) -> dict[Mode, Scored]:
    """Place every operator of the recording as each mode leaves it, and compare. `root` is the program's folder."""
    truths, document = read_truth(recording), msgspec.json.decode((recording / TRACE).read_bytes())
    return {mode: _score(recording, root, mode, truths, document) for mode in modes}


def _score(recording: Path, root: Path, mode: Mode, truths: Sequence[Truth], document: dict[str, Any]) -> Scored:
    counted = [truth for truth in truths if mode is not Mode.TAG or truth.is_tagged]
    if not counted:
        return Scored(None, (), 0.0)
    stripped = recording / f"{mode.value}.json"
    stripped.write_bytes(msgspec.json.encode(strip(document, mode)))
    verdicts, cpu_s = judge(stripped, open_workspace(root), counted)
    return Scored(shares_of(verdicts), tuple(_misses(verdicts)), cpu_s)


def judge(path: Path, workspace: Workspace, truths: Sequence[Truth]) -> tuple[list[Verdict], float]:
    """Where the trace's operators are placed, each against its truth; and the CPU seconds that placing took."""
    timeline = build_timeline(read_trace(path))
    trace = timeline.trace
    operators = trace.rows(Category.CPU_OP)
    row_of = {int(trace.external_id[row]): int(row) for row in operators if trace.external_id[row] != NONE}
    start_s = time.process_time()
    locator = Locator(timeline, workspace)
    places = [locator.locate(row_of[truth.external_id]) for truth in truths]
    cpu_s = time.process_time() - start_s
    return [_verdict(truth, place, workspace) for truth, place in zip(truths, places, strict=True)], cpu_s


def _verdict(truth: Truth, place: Place | None, workspace: Workspace) -> Verdict:
    if place is None:
        return Verdict(truth, None, has_line=False, is_right=False, is_exact=False, is_function=False)
    mark, where = truth.mark, place.location
    is_file = where.path == mark.path
    has_line = where.grain is Grain.LINE
    file = workspace.file(mark.path)
    is_right = has_line and is_file and file is not None and _is_same(file, where.line, mark.line)
    is_function = is_file and _plain(where.qualname) == _plain(mark.function)
    return Verdict(truth, place, has_line, is_right, is_right and place.line == mark.line, is_function)


def _is_same(file: SourceFile, line: int, other: int) -> bool:
    return line == other or ((found := statement_at(file, line)) is not None and found is statement_at(file, other))


def _plain(qualname: str) -> str:
    """A qualified name as the codemap writes it: comprehensions count as part of their function."""
    return _INNER.sub("", qualname.replace(".<locals>", "")) or "<module>"


def shares_of(verdicts: Sequence[Verdict]) -> Shares:
    """The shares of judged operators."""
    total = _weight(verdicts)

    def share(chosen: Iterator[Verdict]) -> float:
        return 100.0 * _weight(chosen) / total

    return Shares(
        line_pct=share(v for v in verdicts if v.is_right),
        function_pct=share(v for v in verdicts if v.is_function),
        exact_pct=share(v for v in verdicts if v.is_exact),
        none_pct=share(v for v in verdicts if not v.has_line),
        wrong_pct=share(v for v in verdicts if v.has_line and not v.is_right),
    )


def _misses(verdicts: Sequence[Verdict]) -> Iterator[Miss]:
    """The misses that weigh most first."""
    total = _weight(verdicts)
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        if not verdict.is_right:
            mark = verdict.truth.mark
            key = f"{mark.path}:{mark.line} {mark.function}", _described(verdict.place)
            groups.setdefault(key, []).append(verdict)
    for (truth, found), group in sorted(groups.items(), key=lambda item: -_weight(item[1])):
        names = tuple(dict.fromkeys(verdict.truth.name for verdict in group))
        yield Miss(100.0 * _weight(group) / total, len(group), names, truth, found)


def _weight(group: Iterable[Verdict]) -> int:
    return sum(verdict.truth.weight_ns for verdict in group)


def _described(place: Place | None) -> str:
    if place is None:
        return "nowhere"
    where = place.location
    note = f" ({place.note})" if place.note else ""
    return f"{where.path}:{where.line} {where.qualname} by {where.how.value} {where.confidence:.2f}{note}"
