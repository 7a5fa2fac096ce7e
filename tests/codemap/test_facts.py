"""The facts of a text: what they name, checked against the parser, and what they never miss."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.codemap import facts as module
from torchtraceap.codemap.facts import Defined, FileFacts, facts_of
from torchtraceap.codemap.source import parse_source

ROOT = Path(module.__file__).parents[1]

NET = textwrap.dedent(
    '''
    """def no(): class No(nn.Module): pass"""
    import torch

    # def no(): pass
    @first
    @second(
        1,
    )
    class Net(nn.Module, metaclass=abc.ABCMeta):
        text = "def no(): pass"

        async def forward(self, x):
            def inner(): return self.conv(x)
            if x:
                @torch.no_grad()
                def late(): pass
            return x.permute (0, 1)

    if True:
        def last(): pass
    '''
)


def test_names_functions_and_classes_with_their_first_lines() -> None:
    assert list(facts_of(NET).defined()) == [
        Defined("Net", 6, "nn.Module, metaclass=abc.ABCMeta"),
        Defined("Net.forward", 13, None),
        Defined("Net.forward.inner", 14, None),
        Defined("Net.forward.late", 16, None),
        Defined("last", 21, None),
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_end_as_python_says(end: str) -> None:
    assert facts_of(NET.replace("\n", end)) == facts_of(NET)


def test_tells_calls_from_other_mentions() -> None:
    facts = facts_of("def made(): pass\nx = used(made)\nself.conv(x)\n")
    assert [name for name in ("made", "used", "conv", "x", "con", "self") if facts.holds(name)] == [
        "made", "used", "conv", "x", "self",
    ]  # fmt: skip
    assert [name for name in ("made", "used", "conv", "x") if facts.calls(name)] == ["used", "conv"]
    assert facts.defines("made") and not facts.defines("used") and not facts.defines_class("made")


def test_says_whether_torch_is_spoken_of() -> None:
    assert facts_of("import torchvision").mentions_torch and not facts_of("import numpy").mentions_torch


@pytest.mark.parametrize("path", sorted(ROOT.glob("codemap/*.py")), ids=lambda path: path.name)
def test_agrees_with_the_parser_on_real_files(path: Path) -> None:
    text = path.read_text("utf-8")
    file = parse_source(path.name, text)
    parsed = {(f.qualname, f.first_line) for f in file.functions if not {"<module>", "<lambda>"} & {f.name}}
    facts = facts_of(text)
    assert {(one.qualname, one.line) for one in facts.defined() if one.bases is None} == parsed
    assert file.tree is not None
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            assert name is None or facts.calls(name), name
        elif isinstance(node, (ast.Name, ast.ClassDef)):
            assert facts.holds(node.id if isinstance(node, ast.Name) else node.name)
            assert not isinstance(node, ast.ClassDef) or facts.defines_class(node.name)


@given(st.text(alphabet="def clas(:)@\n\t \"'#\\x\r\u2028é\ud800"))
def test_any_text_has_sound_facts(text: str) -> None:
    facts = facts_of(text)
    assert facts.is_sound
    assert all(one.qualname for one in facts.defined())


def test_facts_that_do_not_fit_together_are_told() -> None:
    sound = facts_of(inspect.getsource(module))
    assert sound.is_sound
    assert not FileFacts(sound.definitions, sound.lines[:-4], sound.words).is_sound
    assert not FileFacts(sound.definitions, sound.lines, sound.words + b"x").is_sound
