"""What is said of a recording."""

from __future__ import annotations

from torchtraceap.codemap.record.reports import Report, overhead


def test_the_cost_is_rounded():
    report = Report(1, plain_step_us=(1000.0, 1001.0, 999.0), light_step_us=(1043.0,), full_step_us=(2477.0,))
    assert overhead(report) == "one step: 1 ms plain, 1.04 ms light (+4.3 %), 2.48 ms full (+150 %)"


def test_a_cost_below_the_noise_or_below_zero_is_about_nothing():
    report = Report(1, plain_step_us=(800.0, 1000.0, 1200.0), light_step_us=(1100.0,), full_step_us=(700.0,))
    assert overhead(report) == (
        "one step: 1 ms plain, 1.1 ms light (about nothing more), 0.7 ms full (about nothing more)"
    )


def test_without_plain_steps_nothing_is_compared():
    assert overhead(Report(1, full_step_us=(2000.0,))) == "one step: 2 ms full"
    assert overhead(Report(1)) == ""
