"""What a language model was shown, in the text of now: where it stands, and whether it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analyzer.diagnosis.dossiers import made_dossier
from torchtraceap.analyzer.diagnosis.dossier import Excerpt
from torchtraceap.analyzer.findings import Claim, Diagnosis, Fix, Safety, Stage, TextEdit, Verdict
from torchtraceap.codemap.excerpts import excerpt
from torchtraceap.codemap.project import open_workspace
from torchtraceap.server.explained import lines_down
from torchtraceap.server.messages import Analyzed
from torchtraceap.server.state import FolderState

from .reports import finding, place, report
from .test_state import answer, edit

METHOD = "class Net:\n    def forward(self, x):\n        x = slow(x)\n        return x\n"
DOSSIER = replace(
    made_dossier(),
    source=Excerpt("a.py", "Net.forward", 2, ("def forward(self, x):", "    x = slow(x)", "    return x"), 3),
)
EDIT = Fix("model/slow", "Rewrite (check results)", Safety.UNSAFE, (TextEdit("a.py", 2, 5, 4, 17, "def forward"),))
DIAGNOSIS = Diagnosis(
    verdict=Verdict.CONFIRMED,
    pattern="slow",
    stage=Stage.IMPLEMENTATION,
    cause="it is slow",
    claims=(Claim("it takes 9.12 ms", ("waiting",)),),
    claims_dropped=0,
    evidence=(),
    fix="",
    edit=EDIT,
    edit_refused="",
    confidence="high",
    agreement=1.0,
    answers=3,
    model="Tiny, NF4",
    seconds=4.0,
)


@pytest.fixture
def state() -> FolderState:
    content = report(finding("slow", place("a.py", 3, 9, 20, "Net.forward")))
    given = answer(content, {"a.py": METHOD})
    told = Analyzed(
        given.id, given.report, given.device, given.sources, given.confirmed, given.anchors, 0.1, {}, (DOSSIER,)
    )
    state = FolderState()
    state.take(told, "t", 1, lambda path: METHOD)
    state.explain(state.seen[0].id, DOSSIER, DIAGNOSIS)
    return state


def shown(state: FolderState) -> Diagnosis | None:
    return state.diagnosis(state.seen[0])


def test_a_method_is_known_again_as_it_was_quoted(tmp_path) -> None:
    (tmp_path / "a.py").write_text(METHOD)
    source = excerpt(open_workspace(tmp_path), place("a.py", 3, 9, 20, "Net.forward"))
    assert source == DOSSIER.source
    assert source is not None
    lines = METHOD.splitlines()
    assert lines_down(source, 3, lines) == 0
    assert lines_down(source, 5, ["", "", *lines]) == 2
    assert lines_down(source, 3, [*lines[:3], "        return -x"]) is None
    assert lines_down(source, 1, lines) is None


def test_of_equal_lines_those_round_the_finding_count() -> None:
    source = Excerpt("a.py", "<module>", 1, ("f()", "f()", "f()"), 2)
    assert lines_down(source, 5, ["f()"] * 9) == 3


def test_a_changed_line_hides_what_was_said_and_undoing_brings_it_back(state) -> None:
    assert shown(state) == DIAGNOSIS
    edit(state, METHOD.replace("return x", "return x + 1"))
    assert shown(state) is None
    edit(state, METHOD)
    assert shown(state) == DIAGNOSIS


def test_the_edit_of_a_model_moves_with_its_function(state) -> None:
    edit(state, "# new\n\n" + METHOD)
    moved = shown(state)
    assert moved is not None and moved.edit is not None
    assert [(one.line, one.end_line) for one in moved.edit.edits] == [(4, 6)]


def test_what_was_said_of_another_dossier_is_left_out(state) -> None:
    state.forget_explained()
    assert shown(state) is None
    state.explain(state.seen[0].id, replace(DOSSIER, step_us=1.0), DIAGNOSIS)
    assert shown(state) is None
    state.explain(state.seen[0].id, DOSSIER, "the model is gone")
    assert (shown(state), state.seen[0].unexplained) == (None, "the model is gone")
    state.explain(state.seen[0].id, DOSSIER, DIAGNOSIS)
    assert (shown(state), state.seen[0].unexplained) == (DIAGNOSIS, "")
