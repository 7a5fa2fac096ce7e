from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.findings import Evidence, How, Location
from torchtraceap.analyzer.patterns.base import FixKind
from torchtraceap.analyzer.patterns.registry import pattern_by_slug
from torchtraceap.codemap.fixes.base import Case, DeviceFacts
from torchtraceap.codemap.fixes.registry import fixer_of, fixers
from torchtraceap.codemap.project import open_workspace

from . import pairs

_GPU = DeviceFacts(capability=(8, 0), has_bf16=True)


def test_each_fixer_is_found_by_the_slug_of_its_pattern():
    assert {slug: fixer_of(slug) for slug in fixers()} == dict(fixers())
    assert all(pattern_by_slug(slug) for slug in fixers())
    assert fixer_of("base") is None and fixer_of("no-such-pattern") is None and fixer_of("../edits") is None


@pytest.mark.parametrize("slug", list(fixers()))
def test_every_fixer_has_a_page_a_pair_and_a_control(slug: str):
    page = (Path(__file__).parents[3] / "docs" / "patterns" / f"{slug}.md").read_text("utf-8")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert headings[:2] == ["What it is", "Why it is slow"]
    assert headings[2:] == ["What the trace shows", "What the fix does", "When not to", "Versions", "Sources"]
    found = [pairs.load(path) for path in pairs.inputs() if path.parent.name == slug]
    assert any(pair.is_control for pair in found)
    pattern = pattern_by_slug(slug)
    assert pattern is not None
    # What only advises still says where: at least one place that it confirms, without a fix.
    is_advice = pattern.fix is FixKind.ADVICE
    assert any(not pair.is_control or (is_advice and pair.one("confirmed") != "no") for pair in found)


@pytest.mark.parametrize("slug", list(fixers()))
def test_a_pattern_is_listed_with_the_best_fix_that_is_tested(slug: str):
    found = [pairs.load(path) for path in pairs.inputs() if path.parent.name == slug]
    tested = {pair.one("fix", "safe") for pair in found if not pair.is_control}
    best = next((kind for kind in (FixKind.SAFE, FixKind.UNSAFE) if kind.value in tested), FixKind.ADVICE)
    pattern = pattern_by_slug(slug)
    assert pattern is not None and pattern.fix is best


@pytest.mark.parametrize("slug", list(fixers()))
@pytest.mark.parametrize("text", ["", "x = (\n", "# only a comment", "x = 1", "def f(: pass"])
def test_code_without_the_fault_is_no_trouble(slug: str, text: str):
    workspace = open_workspace(Path("none"), {"m.py": text})
    device = replace(_GPU, is_cpu=True)
    for line, path in ((1, "m.py"), (999, "m.py"), (1, "gone.py")):
        place = Location(path, line, 1, line, 2, "<module>", How.STACK)
        answer = fixers()[slug].confirm(Case(pairs.finding(slug, place), place, (), workspace, device))
        assert answer is None or not answer.fixes
    search = fixers()[slug].search
    assert search is not None
    assert list(search(pairs.finding(slug), workspace, device)) == []


def test_a_search_finds_the_faults_of_all_files_and_offers_fixable_ones_first():
    attention = "def f(q, k, v):\n    w = (q @ k.mT / 8).softmax(-1)\n    return w @ v{}\n"
    files = {"a.py": attention.format(", w"), "b/c.py": attention.format(""), "d.py": "x = 1\n", "bad.py": "softmax("}
    search = fixers()["unfused-attention"].search
    assert search is not None
    found = search(pairs.finding("unfused-attention"), open_workspace(Path("none"), files), _GPU)
    assert [(one.location.path, one.location.line, bool(one.fixes)) for one in found] == [
        ("b/c.py", 2, True),
        ("a.py", 2, False),
    ]


def test_a_recording_is_asked_for_what_the_finding_names():
    text = "from torch.profiler import profile\n\nwith profile(activities=[]) as prof:\n    pass\n"
    finding = pairs.finding("trace-lacks-evidence")
    finding = replace(finding, evidence=(Evidence("stack", "recorded without with_stack=True", 1, ""),))
    search = fixers()["trace-lacks-evidence"].search
    assert search is not None
    (found,) = search(finding, open_workspace(Path("none"), {"m.py": text}), _GPU)
    assert (
        "profile(activities=[], with_stack=True)" in pairs.apply_to_files({"m.py": text}, found.fixes[0].edits)["m.py"]
    )


def test_a_fix_reaches_into_the_file_that_constructs():
    files = {
        "net.py": "from torch import nn\n\nclass Net(nn.Module):\n    pass\n\ndef build():\n    return Net().cuda()\n",
        "train.py": "from net import build\n\nmodel = build()\nfor x in batches:\n    y = model(x)\n",
    }
    place = pairs.location("train.py", files["train.py"], 5)
    workspace = open_workspace(Path("none"), files)
    fixer = fixers()["channels-last-missing"]
    answer = fixer.confirm(Case(pairs.finding("channels-last-missing", place), place, (), workspace, _GPU))
    assert answer is not None and (answer.location.path, answer.location.line) == ("net.py", 7)
    fixed = pairs.apply_to_files(files, answer.fixes[0].edits)
    assert (
        "import torch\n" in fixed["net.py"] and "Net().cuda().to(memory_format=torch.channels_last)" in fixed["net.py"]
    )
    assert "model(x.contiguous(memory_format=torch.channels_last))" in fixed["train.py"]
    again = fixer.confirm(Case(pairs.finding("x", place), place, (), open_workspace(Path("none"), fixed), _GPU))
    assert again is None
