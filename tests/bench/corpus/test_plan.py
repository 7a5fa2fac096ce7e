"""Which runs are planned, and that a plan makes the same job anywhere."""

from __future__ import annotations

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from bench.corpus.family import all_families  # noqa: E402
from bench.corpus.fault import all_faults  # noqa: E402
from bench.corpus.plan import costly, devices_of, make, plan_runs  # noqa: E402
from torchtraceap.analyzer.detector.training.dataset import TEST_DEVICES, TEST_FAMILIES  # noqa: E402


def test_a_plan_is_the_same_again_and_begins_a_longer_one() -> None:
    assert plan_runs(40, 3) == plan_runs(90, 3)[:40]
    assert plan_runs(40, 3) != plan_runs(40, 4)
    assert len({plan.seed for plan in plan_runs(90, 3)}) == 90


def test_every_kind_comes_in_several_families_of_training_and_of_test() -> None:
    plans = plan_runs(3 * 5 * len(all_faults()) // 2 + 2, 0)
    for slug in all_faults():
        wanted = [plan.families[0] for plan in plans if plan.slug == slug]
        assert len(set(wanted) - TEST_FAMILIES) >= 4
        assert set(wanted) & TEST_FAMILIES


def test_a_quarter_is_healthy_and_families_come_about_equally_often() -> None:
    plans = plan_runs(600, 0)
    assert sum(not plan.slug for plan in plans) == 150
    for wanted in ([plan for plan in plans if plan.slug], [plan for plan in plans if not plan.slug]):
        count = Counter(plan.families[0] for plan in wanted)
        assert set(count) == set(all_families())
        assert max(count.values()) <= 3 * min(count.values())


def test_devices_of_the_test_are_for_families_of_the_test() -> None:
    for plan in plan_runs(30, 0):
        assert set(devices_of(plan, "swin")) <= TEST_DEVICES
        assert not set(devices_of(plan, "resnet")) & TEST_DEVICES


def test_a_plan_makes_the_same_job_twice() -> None:
    plan = plan_runs(6, 1)[5]
    first, second = make(plan), make(plan)
    assert plan.slug in first.faults
    assert first.faults == second.faults
    assert first.controls == second.controls
    assert (first.job.family, first.job.batch_size) == (second.job.family, second.job.batch_size)
    weights = zip(first.job.model.parameters(), second.job.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)


def test_faults_cost_where_they_say() -> None:
    slugs = sorted(all_faults())
    on_cpu, on_device = costly(slugs, on_cpu=True), costly(slugs, on_cpu=False)
    assert "unfused-attention" in on_cpu
    assert "unfused-attention" in on_device
    assert "pageable-transfer" not in on_cpu
    assert "pageable-transfer" in on_device
