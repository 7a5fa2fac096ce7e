"""Frames of cells, matched to notebooks: by the hash in their names, by what they define, by their count."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.trace.recording import ExactLines, Recording
from torchtraceap.codemap.cells import is_cell_name, match_cells, murmur2
from torchtraceap.codemap.exact import Exact
from torchtraceap.codemap.labels import Label, parse_label
from torchtraceap.codemap.project import open_workspace

from ..builders import TraceBuilder, row_of
from .notebooks import notebook_json

SETUP = "import torch\n"
MODEL = "\n\ndef build():\n    return 1\n\ndef step(x):\n    return x"
SEED = 0xC70F6907


def kernel(source: str, process: int = 4711) -> str:
    """What ipykernel calls a cell."""
    return f"/tmp/ipykernel_{process}/{murmur2(source.encode(), SEED)}.py"


def labels(*names: str) -> dict[str, list[Label]]:
    """Frames by their files."""
    found: dict[str, list[Label]] = {}
    for label in map(parse_label, names):
        found.setdefault(label.owner, []).append(label)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "nb.ipynb").write_bytes(notebook_json("# Title", SETUP, MODEL, markdown={0}, counts=[None, 3, 7]))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 3990065800),
        ("a", 2167009006),
        ("ab", 2805137849),
        ("abc", 3350977461),
        ("abcd", 804720481),
        ("for é in x:\n    pass\n", 2875068380),
    ],
)
def test_the_hash_is_ipykernel_s(text: str, hashed: int) -> None:
    """The figures are those of `murmur2_x86` in ipykernel 7.4."""
    assert murmur2(text.encode(), SEED) == hashed


def test_names_of_cells_are_known() -> None:
    for name in (kernel("x"), r"C:\Temp\ipykernel_12\345.py", "<ipython-input-5-0123456789ab>", "<timed exec>"):
        assert is_cell_name(name), name
    for name in (
        "/tmp/ipykernel_12/model.py",
        "train.py",
        "<frozen abc>",
        "<ipython-input-5>",
        "ipykernel_launcher.py",
    ):
        assert not is_cell_name(name), name


def test_a_cell_is_found_by_the_hash_of_its_text(root: Path) -> None:
    name = kernel(MODEL)
    matched = match_cells(labels(f"{name}(4): step", f"{kernel(SETUP)}(0): <module>"), open_workspace(root))
    assert {owner: (m.path, m.confidence, m.first_line) for owner, m in matched.items()} == {
        name: ("nb.ipynb", 1.0, 4),
        kernel(SETUP): ("nb.ipynb", 1.0, 1),
    }
    # IPython drops the two empty lines: its line 4 is line 6 of the cell, line 9 of the notebook's text.
    assert matched[name].here(parse_label(f"{name}(4): step")).line == 9
    assert matched[name].here(parse_label(f"{name}(0): <module>")).line == 4
    assert matched[name].here(parse_label(f"{name}(4): <cell line: 4>")) == Label(
        matched[name].here(parse_label(f"{name}(4): step")).kind, "<module>", name, 9
    )


@pytest.mark.parametrize("digest", [hashlib.sha1, hashlib.md5])
def test_older_names_hold_another_hash(root: Path, digest) -> None:
    compiled = MODEL.lstrip("\n") + "\n"
    name = f"<ipython-input-9-{digest(compiled.encode()).hexdigest()[:12]}>"
    (found,) = match_cells(labels(f"{name}(4): step"), open_workspace(root)).values()
    assert (found.path, found.first_line, found.confidence) == ("nb.ipynb", 4, 1.0)


def test_an_edited_cell_is_found_by_its_functions(root: Path) -> None:
    name = kernel(MODEL + "  # edited since")
    (found,) = match_cells(labels(f"{name}(1): build", f"{name}(4): step"), open_workspace(root)).values()
    assert (found.first_line, found.confidence) == (4, 0.7)
    (moved,) = match_cells(labels(f"{name}(5): build", f"{name}(9): step"), open_workspace(root)).values()
    assert (moved.first_line, moved.confidence) == (4, 0.35)
    assert match_cells(labels(f"{name}(1): other"), open_workspace(root)) == {}


def test_an_edited_cell_without_functions_is_found_by_its_count(root: Path) -> None:
    (found,) = match_cells(labels("<ipython-input-7-000000000000>(3): <module>"), open_workspace(root)).values()
    assert (found.first_line, found.confidence) == (4, 0.5)
    assert match_cells(labels("<ipython-input-8-000000000000>(3): <module>"), open_workspace(root)) == {}
    assert match_cells(labels(f"{kernel('gone')}(3): <module>"), open_workspace(root)) == {}


def test_of_copies_the_notebook_with_most_cells_is_taken(root: Path) -> None:
    (root / "copy.ipynb").write_bytes(notebook_json(MODEL))
    both = match_cells(labels(f"{kernel(MODEL)}(4): step", f"{kernel(SETUP)}(0): <module>"), open_workspace(root))
    assert {found.path for found in both.values()} == {"nb.ipynb"}
    (alone,) = match_cells(labels(f"{kernel(MODEL)}(4): step"), open_workspace(root)).values()
    assert (alone.path, alone.confidence, alone.others) == ("copy.ipynb", 0.5, ("nb.ipynb",))


def test_the_only_timed_cell_is_where_timed_code_ran(root: Path) -> None:
    (root / "nb.ipynb").write_bytes(notebook_json(SETUP, "%%time\ny = step(x)"))
    (found,) = match_cells(labels("<timed exec>(1): <module>"), open_workspace(root)).values()
    assert found.here(parse_label("<timed exec>(2): f")).line == found.first_line + 2
    (root / "nb.ipynb").write_bytes(notebook_json("%%time\nf()", "%%time\ng()"))
    assert match_cells(labels("<timed exec>(1): <module>"), open_workspace(root)) == {}


def test_other_frames_ask_for_no_notebook(root: Path) -> None:
    (root / "nb.ipynb").write_bytes(b"broken")
    assert match_cells(labels("train.py(3): main"), open_workspace(root)) == {}
    assert match_cells(labels(f"{kernel(MODEL)}(4): step"), open_workspace(root)) == {}


def test_recorded_lines_of_a_cell_are_lines_of_its_notebook(root: Path) -> None:
    b = TraceBuilder(devices=())
    with b.step(0), b.frame(f"{kernel(MODEL)}(4): step"):
        handle = b.leaf("aten::add", us=20, external_id=40)
    trace = b.build()
    for file, line in ((kernel(MODEL), 10), (kernel("edited since"), None)):
        recording = Recording(files=(file,), operator_lines=ExactLines((40,), (0,), (5,)))
        found = Exact(replace(trace, recording=recording), open_workspace(root)).line_of(row_of(trace, handle))
        # The cell begins on line 4 of the notebook's text, with two empty lines that IPython drops.
        assert (found and (found.path, found.line)) == (line and ("nb.ipynb", line))
