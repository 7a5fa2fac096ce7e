from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bench.diagnosis.answers import right_answer
from bench.diagnosis.recheck import false_figures
from bench.diagnosis.room import ids_shown
from tests.bench.diagnosis import made
from torchtraceap.analyzer.diagnosis.answer import LONGEST_CAUSE, LONGEST_CLAIM, MOST_CLAIMS, Answer
from torchtraceap.analyzer.diagnosis.figures import figures_of
from torchtraceap.analyzer.findings import CURED, Evidence


def _answer(question, seed: int = 0) -> Answer:
    return right_answer(question, frozenset(one.id for one in figures_of(question.dossier)), Random(seed))


@pytest.mark.parametrize(
    "question",
    [
        made.question(),
        made.question(made.dossier(slug="", by_rule=0.0)),
        made.question(made.dossier(slug="", bad=0.05, by_rule=0.0, by_detector=0.03), ()),
        made.question(made.dossier(bad=0.05, by_rule=0.4, by_detector=0.03), ()),
    ],
)
def test_every_figure_of_every_answer_is_true_and_fits(question):
    texts = set()
    for seed in range(200):
        answer = _answer(question, seed)
        assert 1 <= len(answer.claims) <= MOST_CLAIMS
        assert false_figures(answer.claims, question.dossier) == []
        assert all(claim.evidence and len(claim.text) <= LONGEST_CLAIM for claim in answer.claims)
        assert 0 < len(answer.cause) <= LONGEST_CAUSE
        assert all(" " <= character <= "~" for character in answer.cause)
        texts |= {claim.text for claim in answer.claims}
    assert len(texts) > 10


def test_claims_cite_only_what_the_prompt_has_room_for():
    question = made.question()
    for seed in range(100):
        answer = right_answer(question, frozenset({"cost", "step"}), Random(seed))
        assert {id for claim in answer.claims for id in claim.evidence} <= {"cost", "step"}


def test_a_cut_prompt_loses_ids_and_keeps_the_headline():
    rows = made.dossier().tree[1:] * 40
    tree = tuple(replace(row, id=f"t{at}", share_pct=50.0 - at / 10) for at, row in enumerate(rows))
    dossier = replace(made.dossier(), tree=tree)
    shown = ids_shown(dossier, 700)
    assert {"step", "cost", "saving", "c1", "c2"} <= shown
    assert 0 < sum(row.id in shown for row in tree) < len(tree)


def test_the_safe_fix_is_taken_and_none_where_no_offered_one_fits():
    with_fixes = made.with_fixes(made.dossier())
    assert _answer(made.question(with_fixes)).fix == made.SLUG
    assert _answer(made.question(with_fixes, (made.OTHER,))).fix == "none"
    assert _answer(made.question(with_fixes, ())).fix == "none"
    assert _answer(made.question()).fix == "none"


def test_the_likeliest_of_what_is_right_is_named_only_if_it_is_a_choice():
    assert _answer(made.question(right=("tf32-off", made.OTHER))).pattern == made.OTHER
    with pytest.raises(ValueError, match="tf32-off"):
        _answer(made.question(right=("tf32-off",)))


def test_healthy_is_none():
    answer = _answer(made.question(right=()))
    assert (answer.pattern, answer.fix) == ("none", "none")


@pytest.mark.parametrize(
    ("dossier", "right", "confidence"),
    [
        (made.dossier(), (made.SLUG,), "high"),
        (made.dossier(by_rule=0.5, by_detector=0.1), (made.SLUG,), "medium"),
        (made.dossier(by_rule=0.0, by_detector=0.3), (made.SLUG,), "low"),
        (made.dossier(bad=0.03), (), "high"),
        (made.dossier(bad=0.5), (), "low"),
    ],
)
def test_confidence_follows_the_evidence(dossier, right, confidence):
    assert _answer(made.question(dossier, right)).confidence == confidence


def test_a_cured_source_is_said_and_makes_unsure():
    cured = Evidence(CURED, "the source holds what fixes this", "record again", "")
    dossier = replace(made.dossier(), evidence=(*made.dossier().evidence, cured))
    answer = _answer(made.question(dossier))
    assert answer.confidence == "low"
    assert "older than the fix" in answer.cause
