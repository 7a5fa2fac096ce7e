"""Rounds of loops, told from what a function's frame did."""

from __future__ import annotations

from tests.builders import TraceBuilder
from tests.patterns.scenes import on_cpu
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.timeline.repeats import Repeat, find_repeats

FRAME = "post.py(3): decode"


def _repeats(body) -> tuple[Timeline, list[Repeat]]:
    timeline = build_timeline(on_cpu(body))
    return timeline, find_repeats(timeline)


def _round(b: TraceBuilder, *names: str) -> None:
    for name in names:
        b.leaf(name, us=20)


def test_a_loop_is_found_once_in_each_execution():
    def body(b: TraceBuilder) -> None:
        with b.frame(FRAME):
            b.leaf("aten::softmax", us=50)
            for _ in range(6):
                _round(b, "aten::argmax", "aten::select", "aten::add")
            b.leaf("aten::stack", us=50)

    timeline, found = _repeats(body)
    assert [(repeat.rounds, repeat.regularity) for repeat in found] == [(6, 1.0)] * 4
    assert timeline.trace.name_of(int(found[0].units[0])) == "aten::argmax"
    assert timeline.trace.name_of(int(found[0].units[-1])) == "aten::add"
    assert len(found[0].first) == 3 and len(found[0].others) == 15
    # Its operators take 20 µs each; the time between them is the frame's own.
    assert found[0].span_ns(timeline) == 18 * 20_000


def test_of_nested_loops_the_inner_one_is_told():
    def body(b: TraceBuilder) -> None:
        with b.frame(FRAME):
            for _ in range(5):
                b.leaf("aten::select", us=2)
                for _ in range(12):
                    _round(b, "aten::argmax", "aten::add")

    _, found = _repeats(body)
    assert {repeat.rounds for repeat in found} == {60}


def test_rounds_that_branch_are_one_loop():
    def body(b: TraceBuilder) -> None:
        with b.frame(FRAME):
            for number in range(20):
                _round(b, "aten::argmax", "aten::add")
                if number % 5 == 0:
                    b.leaf("aten::mul", us=20)

    _, found = _repeats(body)
    assert [(repeat.rounds, repeat.regularity) for repeat in found] == [(20, 0.8)] * 4


def test_layers_of_a_model_and_few_rounds_are_no_loop():
    def body(b: TraceBuilder) -> None:
        with b.frame("model.py(9): forward"):
            for number in range(12):
                with b.frame(f"nn.Module: Block_{number}"):
                    b.leaf("aten::linear", us=50)
        with b.frame(FRAME):
            for _ in range(3):
                _round(b, "aten::argmax", "aten::add")

    _, found = _repeats(body)
    assert found == []


def test_a_loop_over_steps_is_no_loop_within_one():
    def body(b: TraceBuilder) -> None:
        _round(b, "aten::linear", "aten::relu", "aten::sum")

    _, found = _repeats(body)
    assert found == []


def test_without_frames_sizes_tell_a_loop_from_layers():
    def body(b: TraceBuilder) -> None:
        with b.annotation("forward"):
            for number in range(6):
                b.leaf("aten::linear", us=50, shapes=[(8, 2**number)])
        with b.annotation("decode"):
            for _ in range(6):
                b.leaf("aten::argmax", us=50, shapes=[(17, 64)])

    timeline = build_timeline(on_cpu(body, frames=()))
    assert {timeline.trace.name_of(repeat.frame) for repeat in find_repeats(timeline)} == {"decode"}
