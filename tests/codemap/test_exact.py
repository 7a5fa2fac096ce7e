"""Recorded lines: used where the file is what was recorded, and harmless where they cannot be true."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.findings import How
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import Category, Trace
from torchtraceap.analyzer.trace.recording import ExactLines, Recording
from torchtraceap.codemap.git import blob_hash
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.statements import Place

from ..builders import TraceBuilder, row_of

MODEL = """\
import torch


def step(x, flag):
    if flag:
        x = x.relu()
        x = x + 1
    else:
        x = x + 2
        x = x.tanh()
    x = [part @ part
         for part in x]
    return x


def main():
    for _ in range(3):
        step(torch.rand(2, 4), False)
"""


def recorded(**tables: ExactLines) -> Recording:
    return Recording(files=("/home/a/model.py",), sources={"/home/a/model.py": blob_hash(MODEL)}, **tables)


def played() -> tuple[Trace, dict[str, int]]:
    """One call of `step` with Python frames; its events by what they are."""
    b = TraceBuilder(devices=())
    handles: dict[str, int] = {}
    with b.step(0), b.frame("model.py(16): main"), b.frame("model.py(4): step"):
        handles["add"] = b.leaf("aten::add", us=20, external_id=40)
        with b.frame("<built-in method something of Tensor object at 0x7f>") as handle:
            handles["call"] = handle
            handles["inner"] = b.leaf("aten::something", us=20, external_id=41)
    trace = b.build()
    return trace, {name: row_of(trace, handle) for name, handle in handles.items()}


def located(root: Path, trace: Trace, row: int, recording: Recording | None, text: str = MODEL) -> Place | None:
    (root / "model.py").write_text(text)
    timeline = build_timeline(replace(trace, recording=recording))
    return Locator(timeline, open_workspace(root)).locate(row)


def shown(place: Place | None) -> tuple[int, float] | None:
    return place and (place.line, place.location.confidence)


def lines(*rows: tuple[int, int, int]) -> ExactLines:
    ids, files, at = zip(*rows, strict=True)
    return ExactLines(ids, files, at)


def test_the_recorded_line_of_a_call_is_its_place_and_that_of_its_callers(tmp_path: Path) -> None:
    trace, rows = played()
    python = {trace.name_of(row): int(trace.python_id[row]) for row in trace.rows(Category.PYTHON_FUNCTION)}
    call = next(number for name, number in python.items() if name.startswith("<built-in"))
    known = recorded(python_lines=lines((call, 0, 10), (python["model.py(4): step"], 0, 18)))
    place = located(tmp_path, trace, rows["inner"], known)
    assert shown(place) == (10, 1.0) and place is not None and place.location.how is How.STACK
    assert [(caller.line, caller.confidence) for caller in place.callers] == [(18, 1.0)]


def test_known_lines_hold_the_events_between_them_in_place(tmp_path: Path) -> None:
    trace, rows = played()
    call = int(trace.python_id[rows["call"]])
    # The addition that precedes a call on line 10 is the one of the same branch.
    without, known = (
        located(tmp_path, trace, rows["add"], one) for one in (None, recorded(python_lines=lines((call, 0, 10))))
    )
    assert without is not None and known is not None and known.line == 9
    assert known.location.confidence > max(without.location.confidence, 0.8)


def test_an_operator_s_recorded_line_is_its_place_with_and_without_frames(tmp_path: Path) -> None:
    trace, rows = played()
    known = recorded(operator_lines=lines((40, 0, 7)))
    assert shown(located(tmp_path, trace, rows["add"], known)) == (7, 1.0)
    b = TraceBuilder(devices=())
    with b.step(0), b.op("aten::softmax", external_id=7):
        inner = b.leaf("aten::_softmax", external_id=8)
    bare = b.build()
    place = located(tmp_path, bare, row_of(bare, inner), recorded(operator_lines=lines((7, 0, 12))))
    assert shown(place) == (12, 1.0) and place is not None and place.location.line == 11
    assert place.location.qualname == "step"


@pytest.mark.parametrize(
    "damaged",
    [
        recorded(python_lines=ExactLines((1, 2, 3), (0, 0), (10,)), operator_lines=ExactLines((40,), (), ())),
        recorded(operator_lines=lines((40, 0, 999))),
        recorded(operator_lines=lines((40, 0, 18))),  # a line of another function
        recorded(operator_lines=lines((40, 0, -4), (41, 0, 0))),
        recorded(operator_lines=lines((40, 3, 7))),
        recorded(operator_lines=lines((40, -1, 7))),
        recorded(operator_lines=lines((40, 0, 7), (40, 0, 9))),  # two lines for one event
        recorded(operator_lines=lines((40, 0, 10**30))),
        recorded(operator_lines=lines((40, 0, 4))),  # its own `def`
        Recording(files=("../../etc/passwd",), operator_lines=lines((40, 0, 7))),
    ],
    ids=range(10),
)
def test_what_cannot_be_true_is_not_believed(tmp_path: Path, damaged: Recording) -> None:
    trace, rows = played()
    assert shown(located(tmp_path, trace, rows["add"], damaged)) == shown(located(tmp_path, trace, rows["add"], None))


def test_lines_of_a_file_that_was_edited_are_not_used(tmp_path: Path) -> None:
    trace, rows = played()
    known = recorded(operator_lines=lines((40, 0, 7)))
    without, with_lines = (
        shown(located(tmp_path, trace, rows["add"], recording, "# new\n" + MODEL)) for recording in (None, known)
    )
    assert with_lines == without != (7, 1.0)


def test_of_two_copies_the_one_with_the_recorded_text_is_meant(tmp_path: Path) -> None:
    trace, rows = played()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model.py").write_text(MODEL.replace("+ 1", "+ 4"))
    ambiguous = located(tmp_path, trace, rows["add"], None)
    place = located(tmp_path, trace, rows["add"], recorded(operator_lines=lines((40, 0, 7))))
    assert ambiguous is not None and place is not None and place.location.path == "model.py"
    assert shown(place) == (7, 1.0) and place.note == ""


def test_a_file_outside_the_workspace_is_never_named(tmp_path: Path) -> None:
    trace, rows = played()
    outside = "/home/a/other.py"
    known = Recording(
        files=(outside,),
        sources={outside: blob_hash(MODEL)},
        operator_lines=lines((40, 0, 7)),
    )
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "other.py").write_text(MODEL)
    assert shown(located(root, trace, rows["add"], known)) == shown(located(root, trace, rows["add"], None))


def test_real_runs_with_recorded_lines_are_placed_exactly(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from .exact_lines import write_caller_lines
    from .recording import is_own_call, ran, record
    from .test_align import SUBJECTS, runs

    workspace = open_workspace(SUBJECTS.parent)
    right, total = Counter[str](), Counter[str]()
    for run in runs().values():
        timeline = record(run, SUBJECTS, tmp_path / "t.json", lambda p, out: write_caller_lines(p, out, SUBJECTS))
        locator = Locator(timeline, workspace)
        for event in ran(timeline, SUBJECTS):
            if is_own_call(timeline, event.row, SUBJECTS):
                continue
            kind = "call" if timeline.trace.cat[event.row] == Category.PYTHON_FUNCTION else "operator"
            place = locator.locate(event.row)
            total[kind] += 1
            right[kind] += place is not None and (
                place.line == event.line or place.location.line <= event.line <= place.location.end_line
            )
            assert kind == "operator" or (place is not None and place.location.confidence == 1.0)
    assert total["call"] > 300 and right["call"] == total["call"]
    assert total["operator"] > 100 and right["operator"] >= 0.99 * total["operator"]
