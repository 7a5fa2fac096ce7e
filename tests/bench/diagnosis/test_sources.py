from __future__ import annotations

from random import Random

import pytest

from bench.diagnosis.sources import FOLDER, Held, fitting, with_cure, with_source
from bench.diagnosis.traps import COMMENT, CURED, NAMES, trapped
from tests.bench.diagnosis import made
from torchtraceap.analyzer.findings import CURED as CURED_ID

_SLUGS = ("host-scalar-read", "unfused-attention", "zero-grad-to-zero")


@pytest.mark.parametrize("slug", _SLUGS)
def test_fixtures_are_parted_and_hold_the_fault(slug: str):
    for_training, for_exam = fitting(slug, False), fitting(slug, True)
    assert for_training
    assert not {one.excerpt.lines for one in for_training} & {one.excerpt.lines for one in for_exam}
    for one in (*for_training, *for_exam):
        excerpt = one.excerpt
        assert 0 <= excerpt.marked_line - excerpt.first_line < len(excerpt.lines)
        assert not any(line.startswith("# at: ") for line in excerpt.lines)
        assert all(fix.id.partition("/")[0] == slug for fix in one.fixes)


def test_a_dossier_gets_source_with_its_fixes():
    dossier = with_source(made.dossier(), made.SLUG, False, Random(0))
    assert dossier.source is not None
    assert ".item()" in "\n".join(dossier.source.lines)
    assert [fix.id for fix in dossier.fixes] == [made.SLUG]


def test_a_cure_has_no_fix_and_says_so():
    assert fitting(made.SLUG, False, Held.CURE)
    dossier = with_cure(made.dossier(), made.SLUG, False, Random(0))
    assert dossier.fixes == ()
    assert dossier.evidence[-1].id == CURED_ID


def test_what_has_no_fixture_stays_as_it_is():
    assert with_source(made.dossier(), "straggler-rank", False, Random(0)) == made.dossier()
    assert (FOLDER / "host-scalar-read").is_dir()


@pytest.mark.parametrize("kind", [NAMES, COMMENT, CURED])
def test_traps_change_no_figure_and_nothing_that_is_right(kind: str):
    question = made.question(made.with_fixes(made.dossier()))
    found = trapped(question, kind, False, Random(1))
    assert found is not None
    assert found.trap == kind
    assert found.dossier != question.dossier
    assert found.right == question.right
    assert [row.total_us for row in found.dossier.tree] == [row.total_us for row in question.dossier.tree]


def test_a_comment_goes_above_the_marked_line():
    found = trapped(made.question(made.with_fixes(made.dossier())), COMMENT, False, Random(1))
    assert found is not None
    source = found.dossier.source
    assert source is not None
    assert source.lines[source.marked_line - source.first_line] == "    total += loss.item()"
    assert len(source.lines) == 3


def test_a_trap_without_room_is_none():
    assert trapped(made.question(), COMMENT, False, Random(1)) is None
    assert trapped(made.question(made.dossier(slug="")), CURED, False, Random(1)) is None
