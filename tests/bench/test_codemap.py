"""The measure of places: what the line clock says is true, what stripping leaves, and when a place counts as right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from bench.codemap.clock import LineClock  # noqa: E402
from bench.codemap.programs import HELD_OUT, programs  # noqa: E402
from bench.codemap.recorder import MARKS, TRACE  # noqa: E402
from bench.codemap.score import score  # noqa: E402
from bench.codemap.strip import Mode, strip  # noqa: E402
from bench.codemap.truth import Truth, read_truth  # noqa: E402

SOURCE = """\
import torch
from torch import nn


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def scale(x):
    return x * 3


def step(layer):
    x = torch.randn(4, 4)
    with torch.profiler.record_function("scaled"):
        y = scale(
            layer(x),
        )
    loss = Double.apply(y).sum()
    loss.backward()


def main(layer):
    for _ in range(2):
        step(layer)
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A folder with a trace and the clock's marks; the program in `src`."""
    source = tmp_path / "src" / "main.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    names: dict[str, Any] = {}
    exec(compile(SOURCE, str(source), "exec"), names)
    clock, layer = LineClock(source.parent), torch.nn.Linear(4, 4)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, with_stack=True, record_shapes=True) as profiler:
        clock.is_on = True
        clock.install()
        try:
            names["main"](layer)
        finally:
            clock.remove()
    profiler.export_chrome_trace(str(tmp_path / TRACE))
    (tmp_path / MARKS).write_bytes(msgspec.json.encode(clock.marks))
    return tmp_path


def lines(truths: list[Truth], name: str) -> set[tuple[str, int]]:
    return {(truth.mark.function, truth.mark.line) for truth in truths if truth.name == name}


def test_the_clock_tells_the_line_of_every_operator(recording: Path) -> None:
    truths = read_truth(recording)
    assert lines(truths, "aten::randn") == {("step", 20)}
    assert lines(truths, "aten::linear") == {("step", 23)}
    assert lines(truths, "AddmmBackward0") == {("step", 23)}, "a backward operator counts at its forward line"
    # The program's own backward pass counts where it stands; what torch runs for `scale` at its line.
    assert lines(truths, "aten::mul") == {("scale", 16), ("Double.backward", 12)}
    assert {truth.is_tagged for truth in truths if truth.name == "aten::linear"} == {True}
    assert {truth.is_tagged for truth in truths if truth.name == "aten::randn"} == {False}


def test_stripping_leaves_what_it_says(recording: Path) -> None:
    document = msgspec.json.decode((recording / TRACE).read_bytes())

    def left(mode: Mode) -> tuple[set[str], set[str], bool]:
        events = strip(document, mode)["traceEvents"]
        python = {e["name"].split(":")[0] for e in events if e.get("cat") == "python_function"}
        ranges = {e["name"] for e in events if e.get("cat") == "user_annotation"}
        return python, ranges, any("Input Dims" in e.get("args", {}) for e in events)

    assert left(Mode.STACK)[1:] == ({"scaled"}, True) and len(left(Mode.STACK)[0]) > 1
    assert left(Mode.MODULE) == ({"nn.Module"}, set(), True)
    assert left(Mode.SHAPE) == (set(), set(), True)
    assert left(Mode.TAG) == (set(), {"scaled"}, False)
    assert left(Mode.BARE) == (set(), set(), False)


def test_places_are_judged_by_the_statement(recording: Path) -> None:
    scored = score(recording, recording / "src", (Mode.STACK,))[Mode.STACK]
    assert scored.shares is not None
    assert scored.shares.line_pct > 95 and scored.shares.wrong_pct < 5
    # The very line of a statement of three is another question.
    assert scored.shares.exact_pct <= scored.shares.line_pct


def test_a_moved_statement_is_a_miss(recording: Path) -> None:
    source = recording / "src" / "main.py"
    source.write_text(SOURCE.replace("return x * 3", "return x - 3"))
    scored = score(recording, recording / "src", (Mode.BARE,))[Mode.BARE]
    assert scored.shares is not None and scored.shares.line_pct < 100
    assert any("scale" in miss.truth for miss in scored.misses)


def test_programs_are_many_and_some_held_out() -> None:
    every = programs([])
    assert len(every) >= 20 and {program.name for program in every} >= HELD_OUT
    with pytest.raises(SystemExit, match="no program none"):
        programs(["none"])
