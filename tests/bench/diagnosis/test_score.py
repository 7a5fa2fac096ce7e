from __future__ import annotations

import pytest

from bench.diagnosis.questions import read_questions, write_questions
from bench.diagnosis.score import FALSE_FIGURES, Given, Scored, measure
from bench.diagnosis.stage_one import fix_of, likeliest
from tests.bench.diagnosis import made


def test_what_is_right_by_sort():
    with_fixes = made.with_fixes(made.dossier())
    scored = [
        Scored(made.question(with_fixes, run="0001_a"), Given(made.SLUG, f"{made.SLUG}/every")),
        Scored(made.question(with_fixes, run="0002_a"), Given(made.OTHER, "none")),
        Scored(made.question(right=(), run="0003_a"), Given("none", "none")),
        Scored(made.question(right=("tf32-off",), run="0004_a"), Given("none", "none")),
    ]
    found = {name: one.value for name, one in measure(scored).items()}
    assert found == {"pattern_acc": 0.5, "none_acc": 1.0, "fault_acc": pytest.approx(1 / 3), "fix_acc": 0.5}


def test_figures_of_models():
    first = Given(made.SLUG, "none", 9.0, asked=3, valid=3, claims=2, dropped=2, agreement=1.0, prompt_tokens=2400)
    second = Given("", "none", 3.0, asked=1, valid=0, false_figures=1, agreement=0.0, prompt_tokens=800)
    found = measure([Scored(made.question(run="0001_a"), first), Scored(made.question(run="0002_a"), second)])
    assert found["json_valid"].value == 75.0
    assert found["claims_kept_pct"].value == 50.0
    assert found["seconds_per_answer"].value == 6.0
    assert found["prompt_tokens"].value == 800.0
    assert found[FALSE_FIGURES].value == 1.0
    assert found["agreement"].low <= 0.5 <= found["agreement"].high


def test_intervals_are_over_runs():
    right, wrong = Given(made.SLUG, "none"), Given("none", "none")
    one_run = measure([Scored(made.question(run="0001_a"), right), Scored(made.question(run="0001_b"), wrong)])
    many = measure([Scored(made.question(run=f"{at:04}_a"), right if at % 2 else wrong) for at in range(100)])
    assert (one_run["pattern_acc"].low, one_run["pattern_acc"].high) == (0.5, 0.5)
    assert 0.38 < many["pattern_acc"].low < 0.5 < many["pattern_acc"].high < 0.62


@pytest.mark.parametrize(
    ("dossier", "wanted"),
    [
        (made.dossier(), made.SLUG),
        (made.dossier(bad=0.1), made.SLUG),
        (made.dossier(by_rule=0.4), made.SLUG),
        (made.dossier(bad=0.1, by_rule=0.4), "none"),
    ],
)
def test_stage_one_says_none_where_neither_voice_speaks(dossier, wanted: str):
    assert likeliest(dossier, 0.37) == wanted


def test_stage_one_takes_the_first_fix_of_its_pattern():
    dossier = made.with_fixes(made.dossier())
    assert fix_of(dossier, made.SLUG) == f"{made.SLUG}/every"
    assert fix_of(dossier, made.OTHER) == "none"


def test_questions_come_back_as_they_were(tmp_path):
    questions = [made.question(made.with_fixes(made.dossier())), made.question(right=())]
    write_questions(tmp_path / "exam.jsonl.xz", questions)
    assert read_questions(tmp_path / "exam.jsonl.xz") == questions
    (tmp_path / "bad.xz").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"bad\.xz"):
        read_questions(tmp_path / "bad.xz")
