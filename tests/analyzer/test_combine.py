"""Several findings: what they save together, which makes which needless, which comes first."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.assess import to_finding
from torchtraceap.analyzer.combine import combine
from torchtraceap.analyzer.findings import Stage
from torchtraceap.analyzer.order import in_order_of_work
from torchtraceap.analyzer.patterns.base import Candidate, FixKind, Occurrence, Pattern
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.edit import Edit, Scale
from torchtraceap.analyzer.timeline.replay import replay

NAMES = ("aten::one", "aten::other", "aten::rest")


@pytest.fixture(scope="module")
def steps():
    """Four steps of three operators: 3, 2 and 5 ms."""
    b = TraceBuilder(devices=())
    handles = {name: [] for name in NAMES}
    for number in range(4):
        with b.step(number):
            for name, us in zip(NAMES, (3000, 2000, 5000), strict=True):
                handles[name].append(b.leaf(name, us=us))
    trace = b.build()
    timeline = build_timeline(trace)
    rows = {name: np.array([row_of(trace, handle) for handle in handles[name]]) for name in NAMES}
    return timeline, rows


def priced(timeline, slug, *rows, stage=Stage.IMPLEMENTATION, factor=0.0):
    """A finding whose fix takes these rows' time away."""
    edit = Edit(scales=tuple(Scale(one, factor) for one in rows))
    pattern = Pattern("TAP000", slug, slug, FixKind.SAFE, find=lambda timeline: (), stage=stage)
    occurrences = tuple(
        Occurrence(int(group[0]), Edit(scales=tuple(Scale(np.array([row]), factor) for row in group)), np.array(group))
        for group in zip(*(one.tolist() for one in rows), strict=True)
        if timeline.steps.are_steady(np.array(group)).all()
    )
    return to_finding(timeline, pattern, Candidate(slug, "less", occurrences, ())), edit


def test_separate_savings_add_up(steps):
    timeline, rows = steps
    found = [priced(timeline, "a", rows["aten::one"]), priced(timeline, "b", rows["aten::other"])]
    combined = combine(timeline, replay(timeline.graph, Edit()), found)
    assert combined.saving_us_per_step == pytest.approx(5000, rel=0.01)
    assert combined.saving_pct == pytest.approx(50, rel=0.01)
    assert [finding.removed_by for finding in combined.findings] == [(), ()]


def test_the_same_time_is_saved_once_and_the_lesser_fix_says_so(steps):
    timeline, rows = steps
    both = priced(timeline, "both", rows["aten::one"], rows["aten::other"])
    one = priced(timeline, "one", rows["aten::one"])
    combined = combine(timeline, replay(timeline.graph, Edit()), [one, both])
    assert combined.saving_us_per_step == pytest.approx(5000, rel=0.01)
    assert [(f.slug, f.removed_by) for f in combined.findings] == [("both", ()), ("one", ("both",))]


def test_fixes_that_share_nothing_do_not_remove_each_other_where_steps_differ():
    """In the median 4 and 1.5 ms are saved, and 4.1 ms together: 1 + 3, 4 + 0.1 and 8 + 1.5 ms."""
    b = TraceBuilder(devices=())
    handles = {"aten::one": [], "aten::other": []}
    for number, (one_us, other_us) in enumerate(((1000, 3000), (4000, 100), (8000, 1500))):
        with b.step(number):
            handles["aten::one"].append(b.leaf("aten::one", us=one_us))
            handles["aten::other"].append(b.leaf("aten::other", us=other_us))
            b.leaf("aten::rest", us=9000)
    trace = b.build()
    timeline = build_timeline(trace)
    one, other = (np.array([row_of(trace, handle) for handle in handles[name]]) for name in handles)
    found = [priced(timeline, "one", one), priced(timeline, "other", other)]
    combined = combine(timeline, replay(timeline.graph, Edit()), found)
    assert combined.saving_us_per_step < found[0][0].saving_us_per_step + 0.2 * found[1][0].saving_us_per_step
    assert [finding.removed_by for finding in combined.findings] == [(), ()]


def test_what_an_architecture_saves_comes_before_hardware(steps):
    timeline, rows = steps
    small = priced(timeline, "small", rows["aten::other"], stage=Stage.ARCHITECTURE)
    large = priced(timeline, "large", rows["aten::one"], stage=Stage.HARDWARE)
    hint = priced(timeline, "hint", rows["aten::rest"], stage=Stage.ARCHITECTURE, factor=0.999)
    combined = combine(timeline, replay(timeline.graph, Edit()), [hint, large, small])
    assert [finding.slug for finding in combined.findings] == ["small", "large", "hint"]
    assert list(combined.findings) == sorted(combined.findings, key=in_order_of_work)


def test_without_findings_nothing_is_saved(steps):
    timeline, _ = steps
    combined = combine(timeline, None, [])
    assert (combined.findings, combined.saving_us_per_step, combined.saving_pct) == ((), 0.0, 0.0)


def test_what_comes_once_in_several_steps_counts_by_its_share_of_them_all():
    """At the start of every third step 6 ms of one operator; in each step 3 ms of another."""
    b = TraceBuilder(devices=())
    seldom, often = [], []
    for number in range(12):
        with b.step(number):
            if number % 3 == 0:
                seldom.append(b.leaf("aten::seldom", us=6000))
            often.append(b.leaf("aten::often", us=3000))
            b.leaf("aten::rest", us=5000)
    trace = b.build()
    timeline = build_timeline(trace)
    baseline = replay(timeline.graph, Edit())
    pattern = Pattern("TAP000", "x", "x", FixKind.SAFE, find=lambda timeline: ())
    steady = timeline.steps.are_steady

    def found(handles, *, is_periodic):
        rows = np.array([row_of(trace, handle) for handle in handles])
        each = [np.array([row]) for row in rows[steady(rows)]]
        occurrences = tuple(Occurrence(int(row[0]), Edit(removed_ops=row), row) for row in each)
        candidate = Candidate("x", "less", occurrences, (), is_periodic=is_periodic)
        return to_finding(timeline, pattern, candidate, baseline=baseline), candidate.edit

    once, each = found(seldom, is_periodic=True), found(often, is_periodic=False)
    share = timeline.trace.dur_ns[[row_of(trace, handle) for handle in seldom]].sum() / timeline.steps.duration_ns.sum()
    assert once[0].saving_us_per_step == pytest.approx(share * baseline.step_us, rel=0.15)
    assert found(seldom, is_periodic=False)[0].saving_us_per_step == 0.0
    combined = combine(timeline, baseline, [once, each])
    assert combined.saving_us_per_step > each[0].saving_us_per_step
    assert [finding.removed_by for finding in combined.findings] == [(), ()]
