"""Where following the source was given up: what is left says that it is not all."""

from __future__ import annotations

import pytest

from torchtraceap.codemap.building.roots import MOST_LEVELS
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.models import models
from torchtraceap.codemap.module_text import architecture_text
from torchtraceap.codemap.project import open_workspace

MODULE = """class {name}(nn.Module):
    def __init__(self{more}):
        super().__init__()
{body}
        self.l = nn.Linear(3, 3)
"""


def found_in(folder, *classes, then=""):
    text = "from torch import nn\n" + "".join(
        MODULE.format(name=name, more=more, body="".join(f"        {line}\n" for line in body))
        for name, more, body in classes
    )
    (folder / "m.py").write_text(f"{text}\n{then}\n", "utf-8")
    return models(Knowledge(open_workspace(folder)))


def doubled(count):
    yield "C0", "", ["pass"]
    for n in range(1, count):
        yield f"C{n}", "", [f"self.a = C{n - 1}()", f"self.b = C{n - 1}()"]


ENDLESS = ("R", ", n=0", ["self.c = R(n + 1)", "self.d = R(n + 1)"])


@pytest.mark.parametrize("classes", [tuple(doubled(40)), (ENDLESS,)], ids=["doubled", "endless"])
def test_a_model_that_takes_too_long_is_no_exact_figure(tmp_path, classes):
    last = classes[-1][0]
    found = found_in(tmp_path, *classes, then=f"m = {last}()")
    root = next(one.root for one in found if one.root.class_name == last)
    assert not root.totals().is_whole
    assert root.has_more
    assert "too long" in root.note
    assert any("too long" in note for note in found[0].notes)
    text = architecture_text(next(one for one in found if one.root is root))
    assert ">0" in text


def test_classes_that_build_one_another_are_cut(tmp_path):
    found = found_in(tmp_path, ("A", "", ["self.b = B()"]), ("B", "", ["self.a = A()"]), then="A()")
    modules = list(found[0].root.walk())
    assert not found[0].root.totals().is_whole
    assert "not followed to its end" in found[0].notes[0]
    cut = [module for module in modules if module.note]
    assert len(cut) == 1
    assert cut[0].has_more
    assert cut[0].path.endswith(".b.a") or cut[0].path.endswith(".a.b")
    assert not any(module.totals().is_whole for module in modules if module.class_name in "AB")


def test_classes_that_only_build_one_another_are_not_lost(tmp_path):
    (model,) = found_in(tmp_path, ("A", "", ["self.b = B()"]), ("B", "", ["self.a = A()"]))
    assert model.root.class_name == "A"
    assert not model.root.totals().is_whole


def test_what_lies_too_deep_is_said_to_be_left_out(tmp_path):
    loop = f"m = nn.Linear(1, 1)\nfor _ in range({MOST_LEVELS + 20}):\n    m = nn.Sequential(m)"
    (model,) = found_in(tmp_path, then=loop)
    assert [module.path.count(".") for module in model.root.walk() if module.note] == [MOST_LEVELS]
    assert not model.root.totals().is_whole


def test_a_model_of_few_steps_is_whole(tmp_path):
    found = found_in(tmp_path, *doubled(4), then="m = C3()")
    assert [(one.root.class_name, one.root.totals().parameters) for one in found] == [("C3", 12 * 15)]
    assert found[0].root.totals().is_whole
    assert not found[0].notes


@pytest.mark.parametrize(
    "body",
    [
        ["self.me = self"],
        ["self.part = nn.Sequential(nn.ReLU())", "self.part.up = self"],
        ["self.part = nn.Sequential(nn.Sequential(nn.ReLU()))", "self.part[0].owners = [self]"],
    ],
)
def test_a_module_that_refers_to_itself_is_still_a_model(tmp_path, body):
    (model,) = found_in(tmp_path, ("P", "", body), then="P()")
    assert model.root.class_name == "P"
    assert model.root.totals().parameters == 12
    assert [child.name for child in model.root.children] == ["part", "l"][2 - len(body) :]
    assert model.root.totals().is_whole
