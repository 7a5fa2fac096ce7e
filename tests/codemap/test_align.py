"""Real runs of varied functions: every operator and call must find the line that it came from."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtraceap.codemap.align import Alignment, Extent
from torchtraceap.codemap.grammar import compile_code
from torchtraceap.codemap.index import build_index
from torchtraceap.codemap.labels import parse_label
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.source import parse_source

torch = pytest.importorskip("torch")

from . import subjects  # noqa: E402
from .recording import Ran, is_own_call, ran, record  # noqa: E402

SUBJECTS = Path(__file__).with_name("subjects.py")
LEAST_RIGHT = 0.98


def runs() -> dict[str, Callable[[], object]]:
    torch.manual_seed(0)
    s, r = subjects, torch.randn
    q = r(2, 4, 8, 16)
    boxes = torch.rand(3, 4) + torch.tensor([0.0, 0.0, 1.0, 1.0])
    return {
        "attention": lambda: s.attention(q, q, q),
        "attention, masked": lambda: s.attention(q, q, q, torch.ones(8, 8)),
        "patches": lambda: s.patches(r(2, 3, 16, 16), 4),
        "box_iou": lambda: s.box_iou(r(5, 4), r(6, 4)),
        "focal_loss": lambda: s.focal_loss(r(4, 5), torch.rand(4, 5)),
        "early_return": lambda: s.early_return(r(4)),
        "comprehensions": lambda: s.comprehensions(r(4, 5).abs()),
        "greedy": lambda: s.greedy(torch.rand(6), 3),
        "guarded": lambda: s.guarded(r(4, 5)),
        "modes": lambda: s.modes(r(3), r(3)),
        "chained": lambda: s.chained(r(2, 3, 4)),
        "functional_style": lambda: s.functional_style(r(2, 8)),
        "train": lambda: s.train(),
        "sampled": lambda: s.sampled(r(3, 4, 5), boxes),
        "distances": lambda: s.distances(r(4, 5), r(3, 5)),
    }


def test_operators_and_calls_land_on_the_line_that_ran_them(tmp_path: Path) -> None:
    workspace = open_workspace(SUBJECTS.parent)
    right, total, wrong = Counter[str](), Counter[str](), []
    for name, run in runs().items():
        timeline = record(run, SUBJECTS, tmp_path / "trace.json")
        locator = Locator(timeline, workspace)
        for event in ran(timeline, SUBJECTS):
            if is_own_call(timeline, event.row, SUBJECTS):
                continue
            total[name] += 1
            if _is_right(locator, event):
                right[name] += 1
            else:
                wrong.append((name, event.function, event.line, timeline.trace.name_of(event.row)))
    assert len(total) >= 10 and total.total() > 400
    assert right.total() / total.total() >= LEAST_RIGHT, wrong
    assert all(right[name] / total[name] >= 0.9 for name in total), wrong


def _is_right(locator: Locator, event: Ran) -> bool:
    place = locator.locate(event.row)
    if place is None or not place.location.path.endswith(SUBJECTS.name):
        return False
    # A marked line may be any of a statement's lines; of a block's header only.
    return place.line == event.line or place.location.line <= event.line <= place.location.end_line


def test_callers_are_placed_on_their_call_statements(tmp_path: Path) -> None:
    timeline = record(lambda: subjects.train(1), SUBJECTS, tmp_path / "trace.json")
    locator = Locator(timeline, open_workspace(SUBJECTS.parent))
    lines = SUBJECTS.read_text().splitlines()
    row = next(
        e.row for e in ran(timeline, SUBJECTS) if timeline.trace.name_of(e.row) == "aten::mul" and e.function == "gate"
    )
    place = locator.locate(row)
    assert place is not None
    assert lines[place.line - 1].strip() == "return x * torch.sigmoid(pooled)"
    texts = [lines[caller.line - 1].strip() for caller in place.callers]
    assert texts[:3] == ["return x + self.gate(h) * self.shift", "x = block(x)", "outputs = model(images)"]
    assert [caller.qualname for caller in place.callers[:3]] == ["Block.forward", "Net.forward", "train"]


def test_backward_work_is_placed_on_the_forward_line(tmp_path: Path) -> None:
    timeline = record(lambda: subjects.train(1), SUBJECTS, tmp_path / "trace.json")
    locator = Locator(timeline, open_workspace(SUBJECTS.parent))
    lines = SUBJECTS.read_text().splitlines()
    rows = timeline.trace.rows_named(["ConvolutionBackward0"])
    found = Counter(lines[place.line - 1].strip() for row in rows if (place := locator.locate(int(row))) is not None)
    assert found == {
        "h = self.conv1(F.relu(self.norm(x)))": 3,
        "h = self.conv2(F.relu(h))": 3,
        "x = self.stem(x)": 1,
    }


def test_a_backward_pass_written_by_hand_is_placed_on_its_own_lines(tmp_path: Path) -> None:
    timeline = record(subjects.swish, SUBJECTS, tmp_path / "trace.json")
    locator = Locator(timeline, open_workspace(SUBJECTS.parent))
    lines = SUBJECTS.read_text().splitlines()
    rows = timeline.trace.rows_named(["aten::rsub", "aten::mul"])
    places = [locator.locate(int(row)) for row in rows]
    found = Counter(lines[place.line - 1].strip() for place in places if place is not None)
    assert found == {"return x * s": 1, "inner = 1 + x * (1 - s)": 2, "return grad * s * inner": 2}


def test_a_huge_function_is_still_aligned() -> None:
    count = 300
    body = "".join(f"    x{i} = torch.relu(x) + y.f{i % 7}(x[{i}:])\n    if x{i}: z = g{i}(x)\n" for i in range(count))
    file = parse_source("a.py", f"import torch\ndef run(x, y):\n{body}")
    relu = "<built-in method relu of type object at 0x7f>"
    events = (relu, "aten::slice", "a.py(9): f{k}", "aten::add", "a.py(5): g{i}")
    names = [name.format(i=i, k=i % 7) for i in range(count) for name in events]
    alignment = Alignment(
        compile_code(file.functions[1].node, build_index(file)), [parse_label(name) for name in names], Extent()
    )
    found = [getattr(alignment[step].action, "node", None) for step in range(0, len(names), 50)]
    assert [node and node.lineno for node in found] == [3 + 2 * (step // 5) for step in range(0, len(names), 50)]


def test_a_long_row_of_calls_that_nothing_explains_leads_to_what_follows_it() -> None:
    file = parse_source("a.py", "def run(x):\n    y = x.first()\n    return x.last()\n")
    names = ["a.py(9): first", *[f"lib.py({line}): helper{line}" for line in range(1, 1_400)], "a.py(11): last"]
    alignment = Alignment(
        compile_code(file.functions[1].node, build_index(file)), [parse_label(name) for name in names], Extent()
    )
    assert not alignment[1].explained
    found = [alignment[step].action for step in range(len(names))]
    assert [action and action.statement.lineno for action in found] == [2, *[3] * 1_400]


def test_in_a_huge_body_of_statements_alike_only_the_rare_one_is_told() -> None:
    lines = ["    x = f(x)"] * 2_500
    lines[1_200] = "    x = g(x)"
    file = parse_source("a.py", "\n".join(["def run(x):", *lines]))
    names = ["a.py(9): f"] * 3 + ["a.py(5): g"] + ["a.py(9): f"] * 3
    automaton = compile_code(file.functions[1].node, build_index(file))
    labels = [parse_label(name) for name in names]
    tracemalloc.start()
    alignment = Alignment(automaton, labels, Extent(from_entry=False, to_exit=False))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Following all of the body would take a square of 2,500 costs, several times.
    assert most_bytes < 2_500 * 2_500
    matches = [alignment[step] for step in range(len(names))]
    assert [match.action and match.action.statement.lineno for match in matches] == [None] * 3 + [1_202] + [None] * 3
    assert [match.explained for match in matches] == [False] * 3 + [True] + [False] * 3


WRAPPED = """\
import torch
from torch.nn.utils import clip_grad_value_


def main(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    for number, batch in enumerate(loader):
        model(batch).backward()
        if number % 2:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
"""


def test_wrappers_that_decorators_leave_are_known_by_their_package() -> None:
    index = build_index(parse_source("train.py", WRAPPED))
    (main,) = index.functions["main"]
    events = {
        "nn.Module: Net_0": 8,
        "torch/_tensor.py(566): backward": 8,
        "torch/nn/utils/clip_grad.py(39): _no_grad_wrapper": 10,
        "torch/optim/optimizer.py(509): wrapper": 13,
        "torch/_compile.py(42): inner": 14,
    }
    alignment = Alignment(compile_code(main.node, index), [parse_label(name) for name in events], Extent(False, False))
    found = [match.action.statement.lineno for match in map(alignment.__getitem__, range(len(events))) if match.action]
    assert found == list(events.values())
