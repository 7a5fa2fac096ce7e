"""Places that survive edits, comments that silence, and the editor's question whether a fault is still there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.findings import Finding, How, Location, Severity
from torchtraceap.codemap.anchors import anchor_at, find_anchor
from torchtraceap.codemap.asking import called_from, spent_in
from torchtraceap.codemap.edits import apply_edits
from torchtraceap.codemap.fixes.base import DeviceFacts
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.notebook import cells_of
from torchtraceap.codemap.project import Parses, open_workspace
from torchtraceap.codemap.recheck import recheck
from torchtraceap.codemap.source import parse_source
from torchtraceap.codemap.statements import statement_at
from torchtraceap.codemap.suppress import is_suppressed

from .notebooks import notebook_json

LOADER = """\
from torch.utils.data import DataLoader


def train(data):
    loader = DataLoader(data, batch_size=8)
    for batch in loader:
        step(batch)
"""


def at(line: int, end_line: int | None = None, qualname: str = "train") -> Location:
    return Location("a.py", line, 5, end_line or line, 20, qualname, How.STACK)


def finding(slug: str, location: Location) -> Finding:
    return Finding("TAP101", slug, Severity.WARNING, "t", "m", 1.0, 1.0, 10.0, 1.0, (), location)


def test_an_anchor_follows_its_statement() -> None:
    before = parse_source("a.py", "def train(x):\n    x = f(x)\n    x = f(x)\n    return g(x)\n")
    anchors = [anchor_at(before, at(line)) for line in (2, 3, 4)]
    text = "import os\n\n\ndef train(x):\n    x = f(x)  # first\n    log()\n    x = f(x)\n    return g(x)\n"
    found = [find_anchor(parse_source("a.py", text), anchor, at(1)) for anchor in anchors if anchor is not None]
    assert [place and place.line for place in found] == [5, 7, 8]


def test_an_anchor_is_lost_with_its_statement_or_function() -> None:
    before = parse_source("a.py", "def train(x):\n    return g(x)\n")
    anchor = anchor_at(before, at(2))
    assert anchor is not None
    for text in ("def train(x):\n    return h(x)\n", "def other(x):\n    return g(x)\n", "def train(:\n"):
        assert find_anchor(parse_source("a.py", text), anchor, at(2)) is None


def test_a_block_is_anchored_by_its_header() -> None:
    before = parse_source("a.py", "def train(x):\n    for a in x:\n        f(a)\n")
    anchor = anchor_at(before, at(2))
    assert anchor is not None
    after = parse_source("a.py", "def train(x):\n    y = 1\n    for a in x:\n        g(a)\n")
    found = find_anchor(after, anchor, at(2))
    assert found is not None and (found.line, found.end_line) == (3, 3)


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# torchtraceap: ignore", True),
        ("# torchtraceap: ignore[launch-bound]", True),
        ("#torchtraceap:ignore[host-scalar-read, TAP301]", True),
        ("# noqa  # torchtraceap: ignore[launch-bound]", True),
        ("# torchtraceap: ignore[host-scalar-read]", False),
        ("# torchtraceap: ignored", False),
        ("# ignore", False),
    ],
)
def test_comments_silence_by_slug_code_or_altogether(comment: str, silent: bool) -> None:
    file = parse_source("a.py", f"x = f(\n    1,\n)  {comment}\ny = 1\n")
    assert is_suppressed(file, at(1, 3), "TAP301", "launch-bound") is silent
    assert not is_suppressed(file, at(4), "TAP301", "launch-bound")


def test_recheck_sees_the_fault_and_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOADER)
    found = finding("dataloader-in-main-process", at(5))
    device = DeviceFacts(is_cpu=True)
    confirmation = recheck(found, open_workspace(tmp_path), device)
    assert confirmation is not None and confirmation.location.line == 5 and confirmation.fixes
    for edited in ("batch_size=8, num_workers=2", "batch_size=8)  # torchtraceap: ignore[TAP101]\n    print("):
        overlay = {"a.py": LOADER.replace("batch_size=8", edited)}
        assert recheck(found, open_workspace(tmp_path, overlay), device) is None


def test_recheck_of_a_pattern_that_nothing_confirms_follows_the_anchor(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(LOADER)
    file = open_workspace(tmp_path).file("a.py")
    assert file is not None
    found = finding("a-pattern-without-fixer", at(6))
    anchor = anchor_at(file, at(6))
    moved = open_workspace(tmp_path, {"a.py": LOADER.replace("    for", "    pass\n    for")})
    answer = recheck(replace(found, location=at(7)), moved, DeviceFacts(), anchor)
    assert answer is not None and answer.location.line == 7
    gone = open_workspace(tmp_path, {"a.py": LOADER.replace("for batch in loader", "while True")})
    assert recheck(found, gone, DeviceFacts(), anchor) is None


def test_a_file_that_went_away_holds_no_fault(tmp_path: Path) -> None:
    assert recheck(finding("dataloader-in-main-process", at(5)), open_workspace(tmp_path), DeviceFacts()) is None


@pytest.mark.parametrize(("line", "first"), [(1, 1), (2, 1), (3, 3), (4, 4), (6, 6), (7, 7), (9, 8)])
def test_the_statement_of_a_line_is_the_innermost(line: int, first: int) -> None:
    file = parse_source(
        "a.py",
        "x = f(\n    1)\nif x:\n    y = 1\nelse:\n    y = 2\ntry:\n    z = g(\n        y)\nexcept E:\n    pass\n",
    )
    statement = statement_at(file, line)
    assert statement is not None and statement.lineno == first


CONVOLUTIONS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv(x)


def train(images):
    net = Net()
    for image in images:
        loss = net(image).sum()
        loss.backward()
"""


def test_a_fault_shown_where_the_model_is_made_is_asked_for_where_its_time_is_spent(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CONVOLUTIONS)
    spent = at(11, qualname="Net.forward")
    related = (spent_in(spent), *called_from([at(17)]))
    found = replace(finding("channels-last-missing", at(15)), related=related)
    answer = recheck(found, open_workspace(tmp_path), DeviceFacts())
    assert answer is not None and answer.location.line == 15
    fixed = open_workspace(tmp_path, {"a.py": apply_edits(CONVOLUTIONS, answer.fixes[0].edits)})
    assert recheck(found, fixed, DeviceFacts()) is None
    elsewhere = open_workspace(tmp_path, {"a.py": CONVOLUTIONS.replace("    net = Net()\n", "    net = made()\n")})
    assert recheck(found, elsewhere, DeviceFacts()) is None, "the model is made where nobody sees it"


def test_what_a_search_found_can_be_checked_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CONVOLUTIONS)
    workspace = open_workspace(tmp_path)
    fixer = fixers()["channels-last-missing"]
    assert fixer.search is not None
    (first, *_) = fixer.search(finding(fixer.slug, at(1)), workspace, DeviceFacts())
    found = replace(finding(fixer.slug, first.location), related=first.related)
    assert recheck(found, workspace, DeviceFacts()) is not None


def test_parses_are_kept_while_the_text_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\ufeff" + LOADER)
    parses = Parses()
    first = open_workspace(tmp_path, parses=parses).file("a.py")
    assert open_workspace(tmp_path, parses=parses).file("a.py") is first
    edited = open_workspace(tmp_path, {"a.py": "x = 1\n"}, parses=parses).file("a.py")
    assert edited is not None and edited.text == "x = 1\n"


def test_the_same_text_of_other_cells_is_parsed_again(tmp_path: Path) -> None:
    parses = Parses()
    for cells in (["a = 1\n\nb = 2"], ["a = 1", "b = 2"]):
        (tmp_path / "nb.ipynb").write_bytes(notebook_json(*cells))
        file, again = (open_workspace(tmp_path, parses=parses).file("nb.ipynb") for _ in range(2))
        assert file is not None and again is file and file.text == "a = 1\n\nb = 2\n"
        notebook = cells_of(file)
        assert notebook is not None and len(notebook.cells) == len(cells)


def test_only_the_files_parsed_last_are_kept(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text(LOADER)
    parses = Parses(most=2)
    first = {name: open_workspace(tmp_path, parses=parses).file(f"{name}.py") for name in "abc"}
    again = {name: open_workspace(tmp_path, parses=parses).file(f"{name}.py") for name in "cba"}
    assert [name for name in "abc" if first[name] is again[name]] == ["b", "c"]
