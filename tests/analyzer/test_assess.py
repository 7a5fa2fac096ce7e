"""Pricing: by replay only, worded in one sentence, graded by the saving."""

from dataclasses import replace

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.assess import summarize, to_finding
from torchtraceap.analyzer.detected import Options
from torchtraceap.analyzer.findings import SPREAD, Evidence, Severity
from torchtraceap.analyzer.patterns.base import Candidate, FixKind, Occurrence, Pattern
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.edit import Edit, Scale
from torchtraceap.analyzer.trace.model import Problem

PATTERN = Pattern("TAP000", "some-fault", "Some fault", FixKind.SAFE, find=lambda timeline: ())


def cpu_steps(slow_us: float, rest_us: float, steps: int = 4):
    """Steps of one operator to blame and one that is not; answers the timeline and the rows to blame."""
    b = TraceBuilder(devices=())
    handles = []
    for number in range(steps):
        with b.step(number):
            handles.append(b.leaf("aten::slow", us=slow_us))
            b.leaf("aten::rest", us=rest_us)
    trace = b.build()
    return build_timeline(trace), [row_of(trace, handle) for handle in handles]


def candidate_of(timeline, rows, factor=0.0, **fields):
    steady = [row for row in rows if not timeline.steps.is_warmup[timeline.steps.of[row]]]
    occurrences = tuple(
        Occurrence(row, Edit(scales=(Scale(np.array([row]), factor),)), np.array([row])) for row in steady
    )
    return Candidate("it is slow", "something quick", occurrences, (Evidence("n", "count", 1.0, ""),), **fields)


def test_message_cost_and_saving():
    timeline, rows = cpu_steps(slow_us=3000, rest_us=7000)
    finding = to_finding(timeline, PATTERN, candidate_of(timeline, rows, factor=0.5))
    assert finding.message == ("it is slow: 3.00 of 10.0 ms per step; something quick would save about 1.50 ms (15 %)")
    assert finding.cost_us_per_step == pytest.approx(3000)
    assert finding.saving_us_per_step == pytest.approx(1500)
    assert [one.id for one in finding.evidence] == ["n", "cost", "step", "saving"]


def test_nothing_is_built_on_a_cold_start():
    timeline, rows = cpu_steps(slow_us=3000, rest_us=7000)
    cold = replace(timeline, steps=replace(timeline.steps, is_cold=True))
    assert to_finding(timeline, PATTERN, candidate_of(timeline, rows)).severity is Severity.WARNING
    assert to_finding(cold, PATTERN, candidate_of(cold, rows)).severity is Severity.HINT


@pytest.mark.parametrize(
    ("slow_us", "severity"),
    [(1500, Severity.WARNING), (1000, Severity.WARNING), (500, Severity.INFORMATION), (50, Severity.HINT)],
)
def test_severity_follows_the_saving(slow_us, severity):
    timeline, rows = cpu_steps(slow_us, 10_000 - slow_us)
    assert to_finding(timeline, PATTERN, candidate_of(timeline, rows)).severity is severity


def test_threshold_is_a_setting():
    timeline, rows = cpu_steps(500, 9500)
    candidate = candidate_of(timeline, rows)
    assert to_finding(timeline, PATTERN, candidate, Options(min_saving_pct=8)).severity is Severity.HINT


def test_what_is_improbable_is_only_a_hint():
    timeline, rows = cpu_steps(5000, 5000)
    candidate = candidate_of(timeline, rows, probability=0.3)
    assert to_finding(timeline, PATTERN, candidate).severity is Severity.HINT


def test_what_one_step_of_several_shows_is_only_a_hint():
    timeline, rows = cpu_steps(5000, 5000)
    last = to_finding(timeline, PATTERN, candidate_of(timeline, rows[-1:]))
    assert last.severity is Severity.HINT
    assert ("steps", "1 of 4") in [(one.id, one.value) for one in last.evidence]
    two, rows = cpu_steps(5000, 5000, steps=2)
    assert to_finding(two, PATTERN, candidate_of(two, rows[-1:])).severity is not Severity.HINT


def test_time_that_the_host_hides_saves_nothing():
    b = TraceBuilder()
    handles = []
    for number in range(4):
        with b.step(number):
            handles.append(b.kernel("elementwise_kernel", us=100))
            b.host(5000)
    trace = b.build()
    timeline = build_timeline(trace)
    finding = to_finding(timeline, PATTERN, candidate_of(timeline, [row_of(trace, h) for h in handles]))
    assert finding.saving_us_per_step == pytest.approx(0, abs=1)
    assert finding.severity is Severity.HINT


def test_saving_that_something_else_hides_is_told_with_its_condition():
    """The host is late now; once it is prompt, a faster device shows."""
    b = TraceBuilder()
    handles = []
    for number in range(6):
        with b.step(number):
            b.host(5000)
            handles.append(b.kernel("ampere_sgemm_128x64_nn", us=4000))
            if number == 5:
                b.synchronize()
    trace = b.build()
    timeline = build_timeline(trace)
    plain = candidate_of(timeline, [row_of(trace, h) for h in handles], factor=0.5)
    assert to_finding(timeline, PATTERN, plain).severity is Severity.HINT
    conditional = replace(plain, first=Edit(host_factor=0.1), first_clause="once the host keeps up")
    finding = to_finding(timeline, PATTERN, conditional)
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith("%) once the host keeps up")


def test_statements_are_information_without_figures():
    timeline, _ = cpu_steps(5000, 5000)
    statement = Candidate("stacks are missing", "recording again would show lines", (), (), informational=True)
    finding = to_finding(timeline, PATTERN, statement, Options(min_saving_pct=50))
    assert finding.severity is Severity.INFORMATION
    assert finding.message == "stacks are missing: recording again would show lines"


def test_summary_of_a_cpu_trace_has_no_device_figures():
    timeline, _ = cpu_steps(5000, 5000)
    summary = summarize(timeline)
    assert summary.gpu_idle_pct is None and summary.step_idle_pct is None
    assert summary.step_us == pytest.approx(10_000)
    assert summary.missing == ("with_stack=True", "record_shapes=True")


def test_an_empty_trace_is_no_problem():
    timeline = build_timeline(TraceBuilder(devices=()).build())
    assert to_finding(timeline, PATTERN, Candidate("x", "y", (), ())).saving_us_per_step == 0
    assert summarize(timeline).step_us == 0


def test_the_saving_of_steps_that_differ_has_a_spread():
    timeline, rows = cpu_steps(slow_us=3000, rest_us=7000)
    finding = to_finding(timeline, PATTERN, candidate_of(timeline, rows[-2:]))
    spread = next(one for one in finding.evidence if one.id == SPREAD)
    assert spread.value == pytest.approx(1.5) and spread.unit == "ms"


def test_summary_divides_the_step_of_a_device_and_counts_problems():
    b = TraceBuilder()
    for number in range(4):
        with b.step(number):
            b.leaf("aten::mm", us=100, kernel="sgemm", kernel_us=500)
    timeline = build_timeline(b.build())
    lost = Problem("event", "an event is damaged", count=3, offset=1024)
    summary = summarize(replace(timeline, trace=replace(timeline.trace, problems=(lost,))))
    causes = [share for name, share in summary.breakdown.items() if name.startswith("idle_") and name != "idle_pct"]
    assert sum(causes) == pytest.approx(summary.breakdown["idle_pct"], abs=0.05)
    assert {name: share for name, share in summary.breakdown.items() if name.startswith("kernels_")} == {
        "kernels_gemm_simt_pct": 100.0
    }
    assert summary.problems == ("an event is damaged (3 times, first at byte 1,024)",)


def test_no_cost_below_its_saving():
    timeline, rows = cpu_steps(slow_us=3000, rest_us=7000)
    wide = candidate_of(timeline, rows)
    narrow = replace(wide, occurrences=tuple(replace(one, cost_rows=one.cost_rows[:0]) for one in wide.occurrences))
    assert to_finding(timeline, PATTERN, narrow).cost_us_per_step == pytest.approx(3000)
