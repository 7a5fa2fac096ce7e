"""Places of traces that are older than the source: followed to the same statement, or withdrawn with a reason."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.findings import Grain, How, Location, Report, Severity
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.analyzer.trace.recording import Recording
from torchtraceap.codemap.drift import Drift, Stale, find_drift
from torchtraceap.codemap.drift_history import History
from torchtraceap.codemap.drift_locator import FollowingLocator
from torchtraceap.codemap.drift_store import SourceStore
from torchtraceap.codemap.drift_texts import Recorded, Texts
from torchtraceap.codemap.git import blob_hash
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.statements import Place

from ..builders import TraceBuilder, row_of
from .test_locate import MODEL, play, write
from .test_place import MODEL as LOOP
from .test_place import recorded

RECORDED_S = 1_700_000_000
EDITED = MODEL.replace("import torch\n", "# new\n\nimport torch\n", 1).replace(
    "z = torch.relu(y) + x", "z = torch.relu(y) + 2 * x"
)
GONE = MODEL.replace("        return z @ y\n", "        return F.scaled_dot_product_attention(z, y, y)\n")


def git(root: Path, *command: str, at_s: int = RECORDED_S - 1000) -> str:
    clock = {"GIT_AUTHOR_DATE": f"{at_s} +0000", "GIT_COMMITTER_DATE": f"{at_s} +0000"}
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *command], cwd=root, env={**os.environ, **clock}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(root: Path, at_s: int = RECORDED_S - 1000) -> None:
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "a", at_s=at_s)


def located(
    root: Path,
    event: str,
    history: History | None = None,
    file: str = "model.py",
    sources: dict[str, str] | None = None,
    recorded_s: int = RECORDED_S,
) -> Place | str | None:
    """The place of an event recorded in `file`; why it has none any more; None where it never had one."""
    b = TraceBuilder(devices=())
    handles = play(b, file)
    trace = b.build()
    trace = replace(trace, info=replace(trace.info, base_ns=recorded_s * 10**9))
    if sources is not None:
        trace = replace(trace, recording=Recording(folder="/app", files=tuple(sources), sources=sources))
    workspace = open_workspace(root)
    drift = find_drift(trace, workspace, history or History(root))
    locator = FollowingLocator(build_timeline(trace), workspace, drift)
    row = row_of(trace, handles[event])
    return locator.locate(row) or locator.stale(row) or None


def test_a_file_that_did_not_change_is_placed_as_ever(tmp_path: Path) -> None:
    commit(write(tmp_path, model=MODEL))
    found = located(tmp_path, "matmul", sources={"model.py": blob_hash(MODEL)})
    assert isinstance(found, Place) and found.location.line == 13 and found.note == ""


@pytest.mark.parametrize("with_hash", [True, False])
def test_an_edited_file_is_placed_in_the_text_of_its_repository(tmp_path: Path, with_hash: bool) -> None:
    commit(write(tmp_path, model=MODEL))
    write(tmp_path, model=EDITED)
    sources = {"model.py": blob_hash(MODEL)} if with_hash else None
    found = located(tmp_path, "matmul", sources=sources)
    assert isinstance(found, Place) and found.location.line == 15 and found.location.confidence > 0.8
    assert "edited since the recording: recorded as line 13" in found.note
    changed = located(tmp_path, "relu", sources=sources)
    assert isinstance(changed, Place) and changed.location.line == 14 and "itself was edited" in changed.note
    assert [caller.line for caller in changed.callers] == [21]


@pytest.mark.parametrize("with_hash", [True, False])
def test_a_statement_that_was_rewritten_is_withdrawn_with_the_reason(tmp_path: Path, with_hash: bool) -> None:
    commit(write(tmp_path, model=MODEL))
    write(tmp_path, model=GONE)
    reason = located(tmp_path, "matmul", sources={"model.py": blob_hash(MODEL)} if with_hash else None)
    assert reason == (
        "it was measured on line 13 of model.py, in Net.forward, and that statement was removed or rewritten since "
        "the recording"
    )
    other = located(tmp_path, "relu")
    assert isinstance(other, Place) and other.location.line == 12


def test_an_edit_that_was_being_made_when_recorded_is_found_in_the_next_commit(tmp_path: Path) -> None:
    commit(write(tmp_path, model="import torch\n"))
    write(tmp_path, model=MODEL)
    git(tmp_path, "commit", "-q", "-a", "-m", "b", at_s=RECORDED_S + 500)
    write(tmp_path, model=EDITED)
    found = located(tmp_path, "matmul")
    assert isinstance(found, Place) and found.location.line == 15 and "line 13" in found.note


def test_without_a_repository_a_known_hash_lowers_what_is_claimed(tmp_path: Path) -> None:
    write(tmp_path, model=GONE.replace("import torch\n", "import torch\nimport os\n", 1))
    found = located(tmp_path, "relu", sources={"model.py": blob_hash(MODEL)})
    assert isinstance(found, Place) and found.location.confidence < 0.75 and "edited since" in found.note


def test_what_was_seen_before_is_remembered_without_a_repository(tmp_path: Path) -> None:
    root, store = write(tmp_path / "src", model=MODEL), SourceStore(tmp_path / "cache")
    trace = tmp_path / "run.json"
    trace.write_text("{}")
    first = History(root, [trace], store)
    found = located(root, "matmul", first)
    assert isinstance(found, Place) and found.location.line == 13
    first.keep()
    write(root, model=EDITED)
    later = located(root, "matmul", History(root, [trace], SourceStore(tmp_path / "cache")))
    assert isinstance(later, Place) and later.location.line == 15 and "line 13" in later.note
    write(root, model=GONE)
    assert "removed or rewritten" in str(located(root, "matmul", History(root, [trace], store)))


def test_what_was_seen_before_counts_more_than_a_later_commit_that_fits_as_well(tmp_path: Path) -> None:
    root, store = write(tmp_path / "src", model=MODEL), SourceStore(tmp_path / "cache")
    trace = tmp_path / "run.json"
    trace.write_text("{}")
    first = History(root, [trace], store)
    located(root, "matmul", first)
    first.keep()
    write(root, model=MODEL.replace("z @ y", "y @ z"))
    commit(root, at_s=RECORDED_S + 500)
    write(root, model=MODEL + "# the end\n")
    found = located(root, "matmul", History(root, [trace], store))
    assert isinstance(found, Place) and found.location.line == 13 and found.note == ""


def test_a_file_renamed_and_edited_is_found_by_what_was_seen_before(tmp_path: Path) -> None:
    root, store = write(tmp_path / "src", old__model=MODEL), SourceStore(tmp_path / "cache")
    trace = tmp_path / "run.json"
    trace.write_text("{}")
    first = History(root, [trace], store)
    located(root, "matmul", first, file="old/model.py")
    first.keep()
    (root / "old/model.py").unlink()
    write(root, new__net=EDITED, other="import torch\n")
    found = located(root, "matmul", History(root, [trace], store), file="old/model.py")
    assert isinstance(found, Place) and (found.location.path, found.location.line) == ("new/net.py", 15)


def test_a_damaged_memory_says_nothing(tmp_path: Path) -> None:
    store, trace = SourceStore(tmp_path / "cache"), tmp_path / "run.json"
    trace.write_text("{}")
    store.keep(trace, tmp_path, {"a.py": "x = 1\n"})
    blob = store.sources_of(trace, tmp_path)["a.py"]
    assert store.text(blob) == "x = 1\n"
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(b"\0" + file.read_bytes()[:9])
    assert store.text(blob) is None and store.sources_of(trace, tmp_path) == {} and store.text("../run") is None
    trace.write_text("{ }")
    assert SourceStore(tmp_path / "cache").sources_of(trace, tmp_path) == {}, "it is another trace now"


def test_a_renamed_file_is_found_by_its_repository(tmp_path: Path) -> None:
    commit(write(tmp_path, old__model=MODEL))
    (tmp_path / "new").mkdir()
    git(tmp_path, "mv", "old/model.py", "new/net.py")
    (tmp_path / "new/net.py").write_text(EDITED)
    found = located(tmp_path, "matmul", file="old/model.py")
    assert isinstance(found, Place) and (found.location.path, found.location.line) == ("new/net.py", 15)
    assert "old/model.py:13" in found.note


@pytest.mark.parametrize("recorded", ["old/model.py", "/home/somebody/proj/old/model.py"])
def test_a_renamed_file_is_found_by_its_functions(tmp_path: Path, recorded: str) -> None:
    write(tmp_path, new__net=MODEL, new__other=MODEL.replace("def main", "def run"), unrelated="x = 1\n")
    found = located(tmp_path, "matmul", file=recorded)
    assert isinstance(found, Place) and (found.location.path, found.location.line) == ("new/net.py", 13)


def test_a_renamed_file_that_several_could_be_is_not_guessed(tmp_path: Path) -> None:
    write(tmp_path, new__net=MODEL, new__copy=MODEL)
    assert located(tmp_path, "matmul", file="old/model.py") is None


def test_a_function_that_moved_to_another_file_is_followed(tmp_path: Path) -> None:
    commit(write(tmp_path, model=MODEL))
    head, tail = MODEL[: MODEL.index("class Net")], MODEL[MODEL.index("def main") :]
    net = MODEL[MODEL.index("class Net") : MODEL.index("def main")]
    write(tmp_path, model=head + "from layers import Net\n\n\n" + tail, layers=head + "\n\n\n" + net)
    found = located(tmp_path, "matmul")
    assert isinstance(found, Place) and (found.location.path, found.location.line) == ("layers.py", 16)
    assert [(caller.path, caller.line) for caller in found.callers] == [("model.py", 11)]


def test_a_deleted_file_says_so(tmp_path: Path) -> None:
    commit(write(tmp_path, model=MODEL, other="import torch\n"))
    (tmp_path / "model.py").unlink()
    assert "that file is gone" in str(located(tmp_path, "matmul"))


def test_a_file_that_is_broken_at_the_moment_is_withdrawn(tmp_path: Path) -> None:
    commit(write(tmp_path, model=MODEL))
    write(tmp_path, model=MODEL + "def broken(:\n")
    assert "cannot be read as Python" in str(located(tmp_path, "matmul"))


def test_a_trace_that_came_with_the_sources_is_of_those(tmp_path: Path) -> None:
    """A fresh clone: every file is younger than the trace, and the commit of that time is another one."""
    commit(write(tmp_path, model=MODEL.replace("z @ y", "y @ z")))
    write(tmp_path, model=MODEL)
    (tmp_path / "run.json").write_text("{}")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "b", at_s=RECORDED_S + 500)
    found = located(tmp_path, "matmul", History(tmp_path, [tmp_path / "run.json"]))
    assert isinstance(found, Place) and found.location.line == 13 and found.note == ""


def test_a_file_written_before_the_recording_is_what_ran(tmp_path: Path) -> None:
    commit(write(tmp_path, model=MODEL.replace("z @ y", "y @ z")))
    write(tmp_path, model=MODEL)
    os.utime(tmp_path / "model.py", (RECORDED_S - 10, RECORDED_S - 10))
    found = located(tmp_path, "matmul")
    assert isinstance(found, Place) and found.note == ""


def report_of(root: Path, text: str) -> Report:
    """What is placed in `text` of a recording that ran the committed one."""
    analysis = recorded("made-up", ops={"sin": 1})
    trace = analysis.timeline.trace
    trace = replace(trace, recording=Recording(files=("model.py",), sources={"model.py": blob_hash(LOOP)}))
    analysis = replace(analysis, timeline=replace(analysis.timeline, trace=trace))
    write(root, model=text)
    return place(analysis, open_workspace(root), history=History(root))


def test_findings_and_figures_of_an_older_recording(tmp_path: Path) -> None:
    commit(write(tmp_path, model=LOOP))
    moved = report_of(tmp_path, LOOP.replace("import torch\n", "import os\n\nimport torch\n").replace("block", "layer"))
    (finding,) = moved.findings
    assert finding.location is not None and (finding.location.line, finding.location.qualname) == (8, "layer")
    assert finding.stale == "" and any("edited since the recording" in other.message for other in finding.related)
    assert {(spot.qualname, spot.line) for spot in moved.hotspots} == {("layer", 6), ("main", 12)}


def test_a_finding_whose_statement_is_gone_is_no_warning_and_says_so(tmp_path: Path) -> None:
    commit(write(tmp_path, model=LOOP))
    (finding,) = report_of(tmp_path, LOOP.replace("    x = x.sin()\n", "    x = fused(x)\n")).findings
    assert finding.location is None and finding.severity is Severity.INFORMATION
    assert finding.stale.startswith("it was measured on line 6 of model.py, in block")


def test_a_place_that_is_a_whole_file_stays_that_file(tmp_path: Path) -> None:
    commit(write(tmp_path, model=MODEL))
    (tmp_path / "new").mkdir()
    git(tmp_path, "mv", "model.py", "new/net.py")
    workspace = open_workspace(tmp_path)
    texts = Texts((Recorded("model.py", MODEL, ("new/net.py",)), Recorded("gone.py", "x = 1\n")))
    drift = Drift(workspace, texts)
    where = Location("model.py", 1, 1, 1, 13, "<module>", How.OPERATOR, 0.4, Grain.FILE)
    assert drift.location(where) == replace(where, path="new/net.py")
    assert isinstance(drift.location(replace(where, path="gone.py")), Stale)


def test_the_bundled_run_in_a_project_that_was_reorganised_since(tmp_path: Path) -> None:
    leaves = Path(__file__).parents[2] / "examples" / "leaves"
    shutil.copytree(leaves / "src", tmp_path / "src")
    commit(tmp_path)
    text = (tmp_path / "src/vit.py").read_text()
    (tmp_path / "src/vit.py").unlink()
    edited = "# moved\n\n" + text.replace("class Layer", "class Encoder").replace(" Layer(", " Encoder(")
    (tmp_path / "src/layers.py").write_text(edited)
    analysis = analyze(read_trace(leaves / "traces" / "train.pt.trace.json.gz"))
    report = place(analysis, open_workspace(tmp_path), history=History(tmp_path))
    (finding,) = [one for one in report.findings if one.slug == "unfused-attention"]
    assert finding.location is not None and finding.location.path == "src/layers.py"
    assert edited.splitlines()[finding.location.line - 1].strip() == "attn = (q @ k.transpose(-2, -1)) * self.scale"
    assert any(other.location.qualname == "Encoder.forward" for other in finding.related)
    start = edited.index("        attn = (q @")
    (tmp_path / "src/layers.py").write_text(
        edited[:start] + "        x = fused(q, k, v)\n" + edited[edited.index("\n\n", start) :]
    )
    report = place(analysis, open_workspace(tmp_path), history=History(tmp_path))
    (finding,) = [one for one in report.findings if one.slug == "unfused-attention"]
    assert finding.location is None and "src/vit.py, in Attention.forward" in finding.stale
