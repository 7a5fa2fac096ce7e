from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchtraceap.analyzer.findings import Hotspot, Related, Report
from torchtraceap.codemap.fixes.base import Confirmation, DeviceFacts
from torchtraceap.server.documents import differences
from torchtraceap.server.memory import Memory
from torchtraceap.server.messages import Analyzed
from torchtraceap.server.state import FolderState

from .reports import finding, place, report

TEXT = "import torch\n\n\ndef f(x):\n    return slow(x)\n"


def answer(content: Report, sources: dict[str, str], confirmed: frozenset[int] = frozenset({0})) -> Analyzed:
    anchors = (None,) * len(content.findings)
    return Analyzed(1, content, DeviceFacts(), sources, confirmed, anchors, 0.1)


def state_with(content: Report, text: str = TEXT, recorded_ns: int = 1) -> FolderState:
    state = FolderState()
    state.take(answer(content, {"a.py": text}), f"t{recorded_ns}", recorded_ns, lambda path: text)
    return state


def edit(state: FolderState, new: str) -> None:
    state.edit("a.py", differences(state.text("a.py") or "", new), new)


def slow():
    return finding("slow", place("a.py", 5, 12, 16, "f"), related=(Related("caller", place("b.py", 2, 1, 5)),))


def unfixable():
    return replace(slow(), fixes=())


def lines(state: FolderState) -> list[int]:
    return [seen.finding.location.line for seen in state.findings_in("a.py") if seen.finding.location]


def test_findings_and_figures_move_with_edits() -> None:
    state = state_with(report(slow(), hotspots=(Hotspot("a.py", 4, "f", 5.0, 1.0),)))
    edit(state, "# new\n\n" + TEXT)
    assert lines(state) == [7] and [mark.line for mark in state.marks_in("a.py")] == [6]
    assert not state.findings_in("a.py")[0].is_edited
    edit(state, "# new\n\n" + TEXT.replace("slow", "slow "))
    assert state.findings_in("a.py")[0].is_edited


def test_a_result_is_moved_by_what_was_typed_during_the_analysis() -> None:
    state = FolderState()
    state.take(answer(report(slow()), {"a.py": TEXT}), "t", 1, lambda path: "\n\n" + TEXT)
    assert lines(state) == [7]


def test_related_places_move_with_their_own_file() -> None:
    state = state_with(report(slow()))
    state._texts["b.py"] = "x\ny\n"
    state.edit("b.py", differences("x\ny\n", "x\nz\ny\n"), "x\nz\ny\n")
    assert state.seen[0].finding.related[0].location.line == 3 and lines(state) == [5]


def test_a_deleted_statement_hides_its_finding_until_undone() -> None:
    state = state_with(report(slow()))
    edit(state, TEXT.replace("    return slow(x)\n", ""))
    assert lines(state) == []
    edit(state, TEXT)
    assert lines(state) == [5]


def test_a_repaired_fault_stays_away_until_it_is_measured() -> None:
    state = state_with(report(slow()))
    repaired = state.repair(state.seen[0].id)
    assert repaired and repaired.qualname == "f" and not state.seen
    state.take(answer(report(unfixable()), {"a.py": TEXT}), "t1", 1, lambda path: TEXT)
    assert not state.seen and state.repaired_in("a.py"), "the old recording knows nothing of the repair"
    state.take(answer(report(slow()), {"a.py": TEXT}), "t1", 1, lambda path: TEXT + "\n")
    assert not state.seen, "it was placed in a text that has been edited since"
    state.take(answer(report(slow()), {"a.py": TEXT}), "t2", 2, lambda path: TEXT)
    assert lines(state) == [5] and not state.repaired_in("a.py"), "a newer one does"


def test_a_repair_that_was_undone_brings_its_finding_back() -> None:
    state = state_with(report(slow()))
    state.repair(state.seen[0].id)
    state.take(answer(report(slow()), {"a.py": TEXT}), "t1", 1, lambda path: TEXT)
    assert lines(state) == [5], "the source was just seen to hold what the fix changes"


def test_repairs_outlive_the_server(tmp_path: Path) -> None:
    state = state_with(report(slow()))
    state.repair(state.seen[0].id)
    file = tmp_path / "cache" / "repaired.json"
    Memory(file).store(state.repaired)
    after = FolderState()
    after.recall(Memory(file).load())
    after.take(answer(report(unfixable()), {"a.py": TEXT}), "t1", 1, lambda path: TEXT)
    assert not after.seen and [one.slug for one in after.repaired_in("a.py")] == ["slow"]
    after.clear()
    assert after.repaired, "old traces would bring them back"


def test_a_damaged_memory_is_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "repaired.json"
    file.write_bytes(b'[{"line": "x"}]')
    assert Memory(file).load() == () and Memory(tmp_path).load() == ()
    Memory(file / "below").store(state_with(report(slow())).repaired)


def test_a_confirmation_is_moved_by_what_was_typed_meanwhile() -> None:
    state = state_with(report(slow()))
    edit(state, TEXT.replace("slow(x)", "slow(x, 1)"))
    old = state.text("a.py") or ""
    edit(state, "\n" + old)
    state.confirm(state.seen[0].id, Confirmation(place("a.py", 5, 12, 16, "f")), differences(old, "\n" + old))
    assert lines(state) == [6] and not state.seen[0].is_edited


def test_only_repeating_the_shown_text_changes_nothing() -> None:
    state = state_with(report(slow()))
    assert not state.sync("a.py", TEXT) and not state.sync("other.py", "x") and state.sync("a.py", "\n" + TEXT)


def test_a_deleted_file_takes_its_findings() -> None:
    state = state_with(report(slow()))
    state.forget_file("a.py")
    assert not state.seen and not state.paths()
