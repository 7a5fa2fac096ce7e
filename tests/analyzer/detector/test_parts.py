"""A step part by part: the typical step stands for the others, what one step alone shows stands apart."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.analyzer.detector.scored import layers, region_of, scores_of
from tests.builders import TraceBuilder
from torchtraceap.analyzer.detector.parts import anchors, odd_parts, summarize_parts, usual_parts
from torchtraceap.analyzer.detector.windows import MOST_STEPS, cut
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.select import typical_step
from torchtraceap.analyzer.trace.model import NONE


@pytest.fixture(scope="module")
def timeline():
    return layers()


def test_the_typical_step_is_told_part_by_part(timeline):
    bad = region_of(timeline, 3)
    parts = usual_parts(timeline, scores_of(timeline, {bad: 0.9}))
    assert len(parts) == len(cut(timeline).regions)
    assert {part.step for part in parts} == {typical_step(timeline)}
    assert all(part.steps == MOST_STEPS for part in parts)
    assert sum(part.share for part in parts) == pytest.approx(1.0)
    assert parts[0].start_ns == 0
    assert all(one.end_ns == other.start_ns for one, other in pairwise(parts))
    assert [part.bad for part in parts if part.bad > 0.5] == [0.9]
    (worst,) = (part for part in parts if part.bad > 0.5)
    assert worst.kinds == (("some-fault", pytest.approx(0.882)),)


def test_parts_stand_at_what_costs_most_in_them():
    b = TraceBuilder(devices=())
    for number in range(4):
        with b.step(number):
            for layer in range(6):
                with b.frame(f"nn.Module: Layer_{layer}"):
                    b.leaf("aten::add", us=100)
                    b.leaf(f"aten::dear_{layer}", us=800)
                    b.leaf("aten::mul", us=100)
    timeline = build_timeline(b.build())
    windows = cut(timeline)
    names = {timeline.trace.names[timeline.trace.name[row]] for row in anchors(timeline, windows)}
    assert names == {f"aten::dear_{layer}" for layer in range(6)}


def test_backward_parts_stand_at_their_forward_operators():
    b = TraceBuilder()
    for number in range(4):
        with b.step(number):
            forward = [b.leaf("aten::conv2d", us=300, kernel="gemm", kernel_us=300, sequence=n) for n in range(6)]
            assert forward
            b.host(100)
    timeline = build_timeline(b.build())
    windows = cut(timeline)
    found = anchors(timeline, windows)
    assert np.all(timeline.forward_op[found[found != NONE]] == NONE)


def test_what_only_other_steps_have_comes_last():
    b = TraceBuilder(devices=())
    for number in range(5):
        with b.step(number):
            for layer in range(6):
                with b.frame(f"nn.Module: Layer_{layer}"):
                    b.leaf("aten::linear", us=1000)
            if number == 4:
                with b.frame("nn.Module: Extra_0"):
                    b.leaf("aten::sort", us=3000)
    timeline = build_timeline(b.build())
    parts = usual_parts(timeline, scores_of(timeline, {}))
    steps = [part.step for part in parts]
    assert steps == sorted(steps, key=lambda step: step != steps[0])
    assert any("Extra" in part.name and part.steps == 1 for part in parts)


def test_single_anomalies_stand_apart(timeline):
    scores = scores_of(timeline, {})
    odd = 5
    alone, each = np.zeros(len(scores.windows), dtype=np.bool_), scores.each_bad.copy()
    alone[odd], each[odd] = True, 0.97
    scores = replace(scores, is_single=alone, each_bad=each)
    (part,) = odd_parts(timeline, scores)
    assert (part.window, part.bad, part.is_single) == (odd, 0.97, True)
    assert all(one.bad == 0.05 for one in usual_parts(timeline, scores))
    unknown = replace(scores, is_unknown=alone)
    assert odd_parts(timeline, unknown) == ()


def test_all_of_it_in_a_few_figures(timeline):
    dear, other = region_of(timeline, 3), region_of(timeline, 6)
    scores = scores_of(timeline, {dear: 0.9, other: 0.8, region_of(timeline, 1): 0.9})
    scores = replace(scores, is_unknown=scores.windows.region == region_of(timeline, 1))
    told = summarize_parts(timeline, scores)
    assert (told.windows, told.bad, told.unknown, told.single) == (len(scores.windows.regions), 2, 1, 0)
    assert (told.worst, told.worst_probability, told.worst_kind) == (scores.windows.regions[dear], 0.9, "some-fault")


def test_a_trace_without_windows_has_no_parts():
    timeline = build_timeline(TraceBuilder().build())
    scores = scores_of(timeline, {})
    assert usual_parts(timeline, scores) == odd_parts(timeline, scores) == ()
    assert summarize_parts(timeline, scores).windows == 0
