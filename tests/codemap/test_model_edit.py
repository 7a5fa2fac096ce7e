from __future__ import annotations

import ast

import pytest

from torchtraceap.analyzer.diagnosis.diagnose import Refusal
from torchtraceap.analyzer.diagnosis.dossier import Excerpt
from torchtraceap.analyzer.findings import Fix, Safety
from torchtraceap.codemap.edits import apply_edits
from torchtraceap.codemap.model_edit import check_edit
from torchtraceap.codemap.source import parse_source

TEXT = '''import os
import torch


class Trainer:
    @torch.no_grad()
    def run(self, loader):
        """Sum up."""
        total = 0.0
        for x in loader:
            total += self.model(x).item()
        self.total = total
        return total  # all

    def other(self):
        return os.getcwd()
'''
HEAD = "@torch.no_grad()\ndef run(self, loader):\n"
GOOD = HEAD + (
    '    """Sum up,\n    once."""\n    total = torch.zeros(())\n    for x in loader:\n'
    "        total = total + self.model(x)\n"
    "    self.total = total.item()\n    return self.total\n"
)


def excerpt(text: str = TEXT) -> Excerpt:
    function = next(one for one in parse_source("a.py", text).functions if one.name == "run")
    lines = tuple(parse_source("a.py", text).lines[function.first_line - 1 : function.end_line])
    return Excerpt("a.py", function.qualname, function.first_line, lines, function.first_line + 5)


def test_a_rewritten_function_takes_the_place_of_the_old_one_and_nothing_else():
    fix = check_edit(excerpt(), "host-scalar-read", TEXT, GOOD)
    assert isinstance(fix, Fix)
    assert (fix.id, fix.safety) == ("model/host-scalar-read", Safety.UNSAFE)
    assert fix.title.endswith("(check results)")
    after = apply_edits(TEXT, fix.edits)
    ast.parse(after)
    assert after.startswith(TEXT[: TEXT.index("    @torch")])
    assert after.endswith("  # all\n" + TEXT[TEXT.index("\n    def other") :])
    assert "        total = torch.zeros(())\n" in after


def test_line_ends_of_the_file_are_kept():
    text = TEXT.replace("\n", "\r\n")
    fix = check_edit(excerpt(text), "s", text, GOOD)
    assert isinstance(fix, Fix)
    assert "\n" not in apply_edits(text, fix.edits).replace("\r\n", "")


@pytest.mark.parametrize(
    ("proposed", "why"),
    [
        ("", "not one function"),
        ("def run(", "no Python"),
        ("import os", "not one function"),
        (GOOD + "\nos.remove('x')", "not one function"),
        (GOOD.replace("def run", "def walk"), "not the function run"),
        (GOOD.replace("def run", "async def run"), "not the function run"),
        (GOOD.replace("loader)", "loader, n=1)"), "signature"),
        (GOOD.replace("@torch.no_grad()\n", ""), "decorators"),
        (GOOD.replace("self.total = total.item()", "pass"), "no longer sets self.total"),
        (GOOD.replace("return self.total", "pass"), "no longer returns"),
        (GOOD.replace("return self.total", "yield 1"), "generator"),
        (GOOD.replace("torch.zeros(())", "eval('1')"), "built-in name eval"),
        (GOOD.replace("torch.zeros(())", "open('x')"), "built-in name open"),
        (GOOD.replace("torch.zeros(())", "os.system('x')"), "name os"),
        (GOOD.replace("torch.zeros(())", "getattr(torch, 'load')('x')"), "getattr"),
        (GOOD.replace("torch.zeros(())", "torch.load('x')"), "reaches for load"),
        (GOOD.replace("torch.zeros(())", "torch.hub.load('x')"), "reaches for"),
        (GOOD.replace("torch.zeros(())", "().__class__"), "reaches for __class__"),
        (GOOD.replace("    total = torch", "    import subprocess\n    total = torch"), "imports"),
        (GOOD.replace("    total = torch", "    from torch import load\n    total = torch"), "imports"),
        (GOOD.replace("    total = torch", "    from . import evil\n    total = torch"), "imports"),
        (GOOD.replace("    total = torch", "    import numpy.ctypeslib as c\n    total = torch"), "imports"),
        (GOOD.replace("    total = torch", "    def f(eval): ...\n    eval('1')\n    total = torch"), "name eval"),
        (GOOD.replace("    total = torch", "    def f(os): ...\n    os.getcwd()\n    total = torch"), "name os"),
        (GOOD.replace("    total = torch", "    global torch\n    total = torch"), "outside the function"),
        (GOOD.replace("torch.zeros(())", "undefined"), "name undefined"),
        (GOOD + "    # x\n" * 60 + "    x = 1\n", "longer than"),
        (GOOD + "    # " + "x" * 5000, "longer than"),
        (TEXT[TEXT.index("    @torch") : TEXT.index("  # all")], "changes nothing"),
    ],
)
def test_what_is_not_offered_is_refused_in_words(proposed: str, why: str):
    answer = check_edit(excerpt(), "s", TEXT, proposed)
    assert isinstance(answer, Refusal)
    assert why in answer.why


def test_a_function_that_has_changed_since_is_left_alone():
    changed = TEXT.replace("total = 0.0", "total = 1.0")
    assert isinstance(check_edit(excerpt(), "s", changed, GOOD), Refusal)
    assert isinstance(check_edit(excerpt(), "s", "def broken(", GOOD), Refusal)


def test_a_string_over_lines_is_not_indented():
    edit = GOOD.replace("torch.zeros(())", 'len("""a\nb""") + torch.zeros(())')
    fix = check_edit(excerpt(), "s", TEXT, edit)
    assert isinstance(fix, Fix)
    assert '"""a\nb"""' in apply_edits(TEXT, fix.edits)
