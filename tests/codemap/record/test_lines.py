"""Exact lines where torch is another: no event tree, or no line tracer."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.record import lines, recording
from torchtraceap.codemap.record.exported import Exported, ExportedEvent
from torchtraceap.codemap.record.own import OwnFiles
from torchtraceap.codemap.record.stepping import LineTracer

torch = pytest.importorskip("torch")


def trained(folder):
    """A short training, recorded from within."""
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with recording(folder, iterations=0, full=2, warm_up=1) as run:
        for _ in range(10):
            images = torch.ones(2, 4)
            output = net(images)
            loss = (output * images).sum()  # MULTIPLIED
            loss.backward()
            optimizer.step()
    assert run.trace is not None
    return read_trace(run.trace)


def lines_of(trace, ids, exact):
    """The source lines said of the rows, by name."""
    text = Path(__file__).read_text("utf-8").splitlines()
    known = dict(zip(exact.id, zip(exact.file, exact.line, strict=True), strict=True))
    found = {}
    for row in range(len(trace)):
        if int(ids[row]) in known and trace.recording.files[known[int(ids[row])][0]].endswith("test_lines.py"):
            found.setdefault(trace.name_of(row).split(" at 0x")[0], set()).add(
                text[known[int(ids[row])][1] - 1].strip()
            )
    return found


def test_lines_are_exact(tmp_path):
    trace = trained(tmp_path)
    assert trace.recording.notes == ()
    operators = lines_of(trace, trace.external_id, trace.recording.operator_lines)
    assert operators == {"aten::mul": {"loss = (output * images).sum()  # MULTIPLIED"}}


def test_without_an_event_tree_the_line_tracer_gives_the_same_lines_of_the_own_code(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole")

    def gone(results):
        raise AttributeError("experimental_event_tree")

    monkeypatch.setattr("torchtraceap.codemap.record.writing.read_tree", gone)
    trace = trained(tmp_path / "without")
    assert "by the line tracer alone" in trace.recording.notes[0]
    for columns, ids in (("python_lines", "python_id"), ("operator_lines", "external_id")):
        expected = lines_of(whole, getattr(whole, ids), getattr(whole.recording, columns))
        found = lines_of(trace, getattr(trace, ids), getattr(trace.recording, columns))
        assert found
        assert all(expected[name] == said for name, said in found.items())
    assert len(lines_of(trace, trace.python_id, trace.recording.python_lines)) >= 5


def test_a_tracer_with_another_clock_gives_no_line(tmp_path):
    files = OwnFiles(str(tmp_path))
    calls = lines.Calls((lines.PythonCall(50, "f", __file__, 3), lines.PythonCall(60, "f", __file__, 3)), ())
    rows, problem = lines.operator_rows(calls, [(0, "", 0), (10, __file__, 4)], files)
    assert rows == [] and "0 %" in problem


def test_a_debugger_keeps_its_place(tmp_path):
    def theirs(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        problem = LineTracer(OwnFiles(str(tmp_path))).start()
        assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)
    assert "debugger" in problem


def test_a_coarse_clock_is_joined_by_rank():
    def event(number, ts):
        arguments = msgspec.convert({"Python id": number}, type(ExportedEvent().args))
        return ExportedEvent(name="f", ph="X", cat="python_function", ts=ts, dur=1, args=arguments)

    exported = Exported(b"", [event(1, 2.0), event(2, 3.0), event(3, 3.0)], 0)
    calls = [lines.PythonCall(start, "f", "own.py", line) for start, line in ((2_700, 7), (3_100, 8), (3_900, 9))]
    assert lines.python_rows(calls, exported, ()) == [(1, "own.py", 7), (2, "own.py", 8), (3, "own.py", 9)]
    assert lines.python_rows(calls[:1], exported, ()) == []
