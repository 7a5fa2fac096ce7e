"""Which statement of an edited file is which: the same one, or none."""

from __future__ import annotations

import random

import pytest

from bench.drift.trial import drift
from torchtraceap.codemap.drift_match import Match, Matching
from torchtraceap.codemap.drift_units import units_of
from torchtraceap.codemap.source import parse_source

MODEL = """\
class Net(nn.Module):
    def forward(self, x):
        y = self.proj(x)
        y = F.relu(y)
        z = y @ y.transpose(-2, -1)
        z = F.relu(z)
        return self.head(z)

    def encode(self, x):
        return self.stem(x).flatten(2)


def train(model, loader):
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        total += loss.item()
"""


def found(before: str, after: str, line: int) -> Match | None:
    old = units_of(parse_source("a.py", before))
    unit = old.at(line)
    assert unit is not None
    return Matching(old, units_of(parse_source("a.py", after))).of(unit)


def line_of(match: Match | None) -> int | None:
    return None if match is None else match.unit.node.lineno


def test_lines_above_and_layout_do_not_matter() -> None:
    after = "import torch\n\n\n" + MODEL.replace(
        "y = self.proj(x)", "y = self.proj(  # wide\n            x,\n        )"
    )
    assert line_of(found(MODEL, after, 3)) == 6 and line_of(found(MODEL, after, 5)) == 10


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("z = y @ y.transpose(-2, -1)", "z = y @ y.transpose(-2, -1) * 0.5"),
        ("z = y @ y.transpose(-2, -1)", "scores = y @ y.transpose(-2, -1)"),
        ("y = self.proj(x)", "y = self.proj(x, mask)"),
        ("return self.head(z)", "out = self.head(z)"),
    ],
)
def test_a_statement_edited_a_little_is_the_same(before: str, after: str) -> None:
    line = MODEL[: MODEL.index(before)].count("\n") + 1
    match = found(MODEL, MODEL.replace(before, after), line)
    assert match is not None and match.unit.node.lineno == line and match.is_edited and match.confidence < 1


@pytest.mark.parametrize("other", ["y = self.norm(x)", "w = torch.zeros(3)", "pass", "y = x + x"])
def test_another_statement_in_its_place_is_not_it(other: str) -> None:
    assert found(MODEL, MODEL.replace("y = self.proj(x)", other), 3) is None


def test_a_renamed_function_and_class_are_followed() -> None:
    after = MODEL.replace("class Net", "class Model").replace("def train", "def fit")
    assert line_of(found(MODEL, after, 5)) == 5 and line_of(found(MODEL, after, 17)) == 17
    match = found(MODEL, after, 13)
    assert match is not None and match.unit.defines == "fit" and match.is_moved


def test_functions_that_swap_names_are_not_mixed_up() -> None:
    after = MODEL.replace("encode", "\0").replace("forward", "encode").replace("\0", "forward")
    assert line_of(found(MODEL, after, 10)) in (10, None) and line_of(found(MODEL, after, 3)) in (3, None)
    assert found(MODEL, after, 2) is None, "the method of that name is another one"


def test_of_equal_statements_the_one_between_the_same_neighbours_is_taken() -> None:
    twice = MODEL.replace("z = F.relu(z)", "y = F.relu(y)")
    gone = twice.replace("        y = F.relu(y)\n        z =", "        z =")
    assert found(twice, gone, 4) is None
    assert line_of(found(twice, gone, 6)) == 5


def test_a_statement_moved_into_a_helper_is_followed_with_its_neighbours() -> None:
    moved = "        loss.backward()\n        total += loss.item()\n"
    after = (
        MODEL.replace(moved, "        finish(loss)\n") + "\n\ndef finish(loss):\n" + moved.replace("    " * 2, "    ")
    )
    match = found(MODEL, after, 16)
    assert match is not None and match.unit.scope == "finish" and match.is_moved


def test_a_file_that_is_no_python_any_more_holds_nothing() -> None:
    assert found(MODEL, MODEL + "def broken(:\n", 3) is None


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_no_random_drift_leads_to_another_statement(first: int) -> None:
    """The same drifts each time: some in ten thousand others do, as docs/places.md says."""
    for seed in range(first, first + 20):
        assert drift(random.Random(seed), seed % 13).wrong == (), seed


def test_most_places_survive_some_edits() -> None:
    """Withdrawing everything would be no mistake either."""
    counts = [drift(random.Random(seed), 3) for seed in range(60)]
    right, lost = sum(one.right for one in counts), sum(one.lost for one in counts)
    assert right / (right + lost) > 0.94


def test_a_function_of_hundreds_of_equal_statements_is_given_up_and_the_others_are_not() -> None:
    """Comparing them all can take minutes, so it is not begun."""
    before = "def table(x):\n    start(x)\n" + "    x.append(0)\n" * 300 + "    end(x)\n" + MODEL
    after = before.replace("start(x)\n", "start(x)\n    check(y)\n")
    assert found(before, after, 100) is None
    line = before[: before.index("z = y @ y")].count("\n") + 1
    assert line_of(found(before, after, line)) == line + 1


def test_renaming_all_of_many_functions_is_followed() -> None:
    """Each was compared with each, by all statements of the file: with hundreds of them it took minutes."""
    texts = [
        "".join(f"def {name}{i}(x):\n    y = conv{i}(x)\n    return norm(y)\n" for i in range(500)) for name in "fg"
    ]
    match = found(*texts, 1499)
    assert match is not None and match.unit.scope == "g499"
