"""What the placer must not do: name lines of another program, fail on broken files, or take for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import Category
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.sequence import placer
from torchtraceap.codemap.sequence.walker import MOST_NODES, Walker

from ...builders import TraceBuilder, row_of
from .programs import PROGRAMS
from .recorded import place_program, placer_for, record_program

_STEP = ("rand", "cumsum", "tanh")
_HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def _places(source: str, workspace: dict[str, str], folder: Path) -> list[int]:
    """The lines that are named for the operators of `source`'s recording in a workspace of other files."""
    timeline = record_program(source, folder)
    root = folder / "other"
    root.mkdir()
    for name, text in workspace.items():
        (root / name).write_text(text)
    placer = placer_for(timeline, root)
    places = [placer.locate(row) for row in timeline.trace.rows(Category.CPU_OP).tolist()]
    return [place.line for place in places if place is not None]


def test_a_trace_of_another_program_has_no_places(tmp_path: Path) -> None:
    for number, (recorded, other) in enumerate(
        [("training_loop", "functional"), ("boxes", "trainer_class"), ("functional", "boxes"), ("loader", "boxes")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert _places(PROGRAMS[recorded], {"main.py": PROGRAMS[other]}, folder) == []


def test_a_broken_file_beside_the_program_does_no_harm(tmp_path: Path) -> None:
    workspace = {"main.py": PROGRAMS["training_loop"], "broken.py": "import torch\ndef f(:\n", "empty.py": ""}
    assert _places(PROGRAMS["training_loop"], workspace, tmp_path)


def test_a_broken_program_has_no_places(tmp_path: Path) -> None:
    assert _places(PROGRAMS["functional"], {"main.py": PROGRAMS["functional"] + "\nif True print(\n"}, tmp_path) == []


def _walked(source: str, folder: Path) -> Walker:
    (folder / "main.py").write_text(source)
    walker = Walker(Knowledge(open_workspace(folder)))
    walker.walk_script("main.py")
    return walker


def test_a_program_without_end_is_cut(tmp_path: Path) -> None:
    source = _HEAD + (
        "def f(x, n):\n"
        "    if n > x.mean():\n"
        "        return f(x + 1, n) + f(x * 2, n) + f(x - 1, n)\n"
        "    return g(x, n)\n"
        "def g(x, n):\n"
        "    while True:\n"
        "        x = f(x.exp(), n) + g(x.log(), n)\n"
        "f(torch.ones(3), 0)\n"
    )
    start_s = time.process_time()
    walker = _walked(source, tmp_path)
    assert len(walker.program.nodes) <= MOST_NODES + 1
    assert time.process_time() - start_s < 10


def test_a_huge_model_is_cut(tmp_path: Path) -> None:
    blocks = "nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)) for _ in range(60)])"
    source = _HEAD + f"net = nn.Sequential(*[{blocks} for _ in range(200)])\nprint(net(torch.ones(1, 8)))\n"
    start_s = time.process_time()
    walker = _walked(source, tmp_path)
    assert len(walker.program.nodes) <= MOST_NODES + 1
    assert time.process_time() - start_s < 10


def test_a_part_too_long_to_be_aligned_does_not_keep_the_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placer, "_MOST_EVENTS", 20)
    (tmp_path / "main.py").write_text("import torch\n\nfor _ in range(3):\n    torch.rand(4).cumsum(0).tanh()\n")
    b = TraceBuilder(devices=())
    outside, inside = [b.leaf(f"aten::{name}") for _ in range(10) for name in _STEP], []
    for number in range(3):
        with b.step(number):
            inside += [b.leaf(f"aten::{name}") for name in _STEP]
    trace = b.build()
    placed = placer_for(build_timeline(trace), tmp_path)
    assert {placed.locate(row_of(trace, handle)) for handle in outside} == {None}
    assert [place and place.line for place in (placed.locate(row_of(trace, handle)) for handle in inside)] == [4] * 9


def test_sizes_tell_which_branch_ran(tmp_path: Path) -> None:
    source = _HEAD + (
        "import os\n"
        "narrow, wide = nn.Linear(4, 8), nn.Linear(4, 16)  # built\n"
        "for _ in range(3):\n"
        "    x = torch.ones(2, 4)\n"
        "    if 'NO_SUCH_VARIABLE' in os.environ:\n"
        "        x = narrow(x)\n"
        "    else:\n"
        "        x = wide(x)\n"
        "    x = x.relu()\n"
    )
    placed = [one for one in place_program(source, tmp_path) if one.name == "aten::linear"]
    assert [one.found for one in placed] == [11, 11, 11]


def test_without_sizes_two_branches_that_look_alike_are_not_told_apart(tmp_path: Path) -> None:
    source = _HEAD + (
        "import os\n"
        "narrow, wide = nn.Linear(4, 8), nn.Linear(4, 16)  # built\n"
        "for _ in range(3):\n"
        "    x = torch.ones(2, 4)\n"
        "    if 'NO_SUCH_VARIABLE' in os.environ:\n"
        "        x = narrow(x)\n"
        "    else:\n"
        "        x = wide(x)\n"
        "    x = x.relu()\n"
    )
    placed = place_program(source, tmp_path, shapes=False)
    assert [one.found for one in placed if one.name == "aten::linear"] == [0, 0, 0]
    assert [one.found for one in placed if one.name == "aten::relu"] == [12, 12, 12]


def test_a_place_knows_its_callers(tmp_path: Path) -> None:
    placed = place_program(PROGRAMS["training_loop"], tmp_path)
    norm = next(one for one in placed if one.name == "aten::batch_norm")
    assert norm.place is not None
    assert [caller.qualname for caller in norm.place.callers] == ["Net.forward", "main", "<module>"]
    assert norm.place.location.how.value == "shape"
