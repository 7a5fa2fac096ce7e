"""The faults of the sample projects: each fix lands on its line, parses, and takes the fault away."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from torchtraceap.codemap.fixes.base import Case, Confirmation, DeviceFacts
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.project import open_workspace

from . import pairs

_PROJECTS = Path(__file__).parents[4] / "shared" / "projects"
_CPU = DeviceFacts(is_cpu=True, torch_version="2.13.0+cpu")
_STACKS = {
    ("resnet_birds", "dataloader-in-main-process"): ["for x, y in loader:"],
    ("resnet_birds", "channels-last-missing"): [
        "y = self.act(self.expand(",
        "x = self.units(",
        "F.cross_entropy(model(x)",
    ],
    ("unet_seg", "permute-contiguous-churn"): ["return x.permute(0, 3, 1, 2)", "a = self.d1(x)", "outs = model(x)"],
    ("posekit", "numpy-on-the-way"): ["return torch.from_numpy(batch)"],
    ("posekit", "unfused-attention"): ["y = torch.matmul(weights, v)", "x = x + self.mix("],
}
"""Places as a trace gives them, innermost first, of the faults that truth.json lists."""


@pytest.mark.parametrize(("project", "slug"), list(_STACKS))
def test_a_fault_is_confirmed_on_its_line_and_its_fix_takes_it_away(project: str, slug: str):
    root = _PROJECTS / project
    if not root.is_dir():
        pytest.skip("needs ../shared/projects")
    fault = next(one for one in json.loads((root / "truth.json").read_text())["faults"] if one["slug"] == slug)
    path = fault["path"]
    texts = {path: (root / path).read_text()}
    answer = _confirm(slug, path, texts, [pairs.line_of(texts[path], text) for text in _STACKS[project, slug]])
    assert answer is not None
    assert (answer.location.path, answer.location.line) == (path, fault["line"])
    (fix,) = answer.fixes
    fixed = pairs.apply_to_files(texts, fix.edits)
    ast.parse(fixed[path])
    lines = fixed[path].splitlines()
    assert _confirm(slug, path, fixed, [min(answer.location.line, len(lines))]) is None


def _confirm(slug: str, path: str, texts: dict[str, str], lines: list[int]) -> Confirmation | None:
    place, *callers = (pairs.location(path, texts[path], line) for line in lines)
    workspace = open_workspace(Path("none"), texts)
    return fixers()[slug].confirm(Case(pairs.finding(slug, place), place, tuple(callers), workspace, _CPU))
