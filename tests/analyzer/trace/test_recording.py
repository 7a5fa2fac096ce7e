"""The file that a recording run writes beside its trace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.analyzer.trace.recording import (
    ExactLines,
    Recording,
    is_trace_name,
    recording_path,
    write_recording,
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "train.pt.trace.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}
    path.write_text(json.dumps({"traceEvents": [event]}))
    return path


@pytest.mark.parametrize("name", ["train.pt.trace.json", "train.pt.trace.json.gz"])
def test_it_stands_beside_its_trace(name: str):
    assert recording_path(Path("runs", name)) == Path("runs", "train.pt.trace.torchtraceap.json")


def test_it_is_no_trace():
    assert is_trace_name("a.json") and is_trace_name("a.pt.trace.json.gz")
    assert not is_trace_name("a.pt.trace.torchtraceap.json") and not is_trace_name("a.txt")


def test_it_is_read_with_its_trace(trace: Path):
    written = Recording(torch_version="2.13.0", python_lines=ExactLines((7,), (0,), (33,)), files=("train.py",))
    assert write_recording(trace, written) == recording_path(trace)
    assert read_trace(trace).recording == written


def test_without_one_the_trace_says_nothing_of_it(trace: Path):
    read = read_trace(trace)
    assert read.recording is None and not read.problems


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is no recording"),
        (b'{"files": 3}', "is no recording"),
        (b"[" * 100_000, "is no recording"),
        (b'{"files": ["\xff"]}', "is no recording"),
        (b'{"format": 99}', "newer torchtraceap"),
    ],
)
def test_a_damaged_one_is_a_problem_and_no_error(trace: Path, text: bytes, said: str):
    recording_path(trace).write_bytes(text)
    read = read_trace(trace)
    assert read.recording is None and len(read) == 1
    assert [said in problem.message for problem in read.problems] == [True]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(trace: Path):
    os.mkfifo(recording_path(trace))
    assert "no regular file" in read_trace(trace).problems[0].message
