"""Public reports of slow vision code, each as a small program: found on its line, fixed as wanted, controls silent."""

from __future__ import annotations

import pytest

from bench.cases import Case, cases, run

ALL = cases()


@pytest.mark.parametrize("case", ALL, ids=[case.folder.name for case in ALL])
def test_a_case_comes_out_as_wanted(case: Case) -> None:
    pytest.importorskip("torch")
    outcome = run(case)
    assert outcome.holds, f"wanted {case.wanted}; got {outcome.got}"


def test_there_are_cases() -> None:
    assert len(ALL) > 30
