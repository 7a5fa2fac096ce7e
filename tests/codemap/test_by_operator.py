"""Events that only their operator tells of: one line where one fits, else what holds them all, else nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.analyzer.findings import Grain, How
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.codemap.by_operator import ByOperator
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.op_sites import find_op_sites
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.recorded import RecordedFiles
from torchtraceap.codemap.statements import Place, location_of, statement_at

from ..builders import TraceBuilder, row_of

TRAIN = """\
import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x, mask):
        x = self.conv(x)
        x = x.softmax(1)
        kept = x[mask]
        x = F.interpolate(x, scale_factor=2)
        return x.softmax(-1), torch.nonzero(kept)


def train(loader, model, optimizer):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if loss.item() > 3:
            print(float(loss))
"""


def placed(
    root: Path, name: str, known: dict[str, int] | None = None, text: str = TRAIN, asked: str = "", **inputs: object
) -> Place | None:
    """The place of operator `name` between two others whose lines may be known."""
    (root / "train.py").write_text(text)
    b = TraceBuilder(devices=())
    handles = {}
    with b.step(0):
        handles["aten::before"] = b.leaf("aten::before")
        if name.startswith("aten::"):
            handles[name] = b.leaf(name, us=20, **inputs)
        else:
            with b.annotation(name) as handles[name]:
                handles["inside"] = b.leaf("aten::_foreach_add_", us=20)
        handles["aten::after"] = b.leaf("aten::after")
    trace = b.build()
    workspace = open_workspace(root)
    knowledge = Knowledge(workspace)

    def surely(row: int) -> Place | None:
        line = (known or {}).get(trace.name_of(row).removeprefix("aten::"))
        file = knowledge.file("train.py")
        statement = statement_at(file, line) if line else None
        function = file.function_at(line) if line else None
        if statement is None or line is None or function is None:
            return None
        return Place(location_of(file, statement, function.qualname, How.ORDER, 0.9), line)

    placer = ByOperator(build_timeline(trace), knowledge, RecordedFiles(workspace, ()), surely)
    return placer.locate(row_of(trace, handles[asked or name]))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("aten::nonzero", 16),
        ("aten::cross_entropy_loss", 22),
        ("aten::upsample_nearest2d", 15),
        ("aten::conv2d", 12),
        ("aten::index", 14),
        ("Optimizer.step#AdamW.step", 24),
        ("Optimizer.zero_grad#AdamW.zero_grad", 21),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20),
    ],
)
def test_the_only_statement_that_can_run_it_is_the_place(tmp_path: Path, name: str, line: int) -> None:
    place = placed(tmp_path, name)
    assert place is not None and (place.line, place.location.grain) == (line, Grain.LINE)
    assert place.location.how is How.OPERATOR and 0.3 < place.location.confidence < 0.8


def test_what_runs_inside_the_loader_is_called_by_its_loop(tmp_path: Path) -> None:
    place = placed(tmp_path, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", asked="inside")
    assert place is not None and (place.line, place.location.grain) == (20, Grain.CALL)


def test_of_several_the_one_between_its_neighbours_is_meant(tmp_path: Path) -> None:
    early, late = (
        placed(tmp_path, "aten::softmax", {"before": before, "after": after}) for before, after in ((12, 14), (15, 16))
    )
    assert early is not None and late is not None and (early.line, late.line) == (13, 16)
    assert early.location.confidence > 0.7


def test_the_numbers_that_are_written_tell_two_calls_apart(tmp_path: Path) -> None:
    place = placed(tmp_path, "aten::softmax", shapes=((2, 8, 4, 4),), concrete=("", "-1", ""))
    assert place is not None and (place.line, place.location.grain) == (16, Grain.LINE)


def test_where_several_fit_only_what_holds_them_is_named(tmp_path: Path) -> None:
    within = placed(tmp_path, "aten::softmax")
    assert within is not None and (within.line, within.location.grain) == (11, Grain.FUNCTION)
    assert within.location.qualname == "Head.forward" and "any of 2 statements can run softmax here" in within.note
    spread = placed(tmp_path, "aten::softmax", text=TRAIN + "\n\ndef other(x):\n    return x.softmax(0)\n")
    assert spread is not None and (spread.line, spread.location.grain) == (1, Grain.FILE)
    (tmp_path / "more.py").write_text("import torch\n\n\ndef other(x):\n    return x.softmax(0)\n")
    assert placed(tmp_path, "aten::softmax") is None


def test_what_no_statement_can_run_has_no_place(tmp_path: Path) -> None:
    assert placed(tmp_path, "aten::cholesky") is None


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("x: dict[str, key] = {}", "index"),
        ("y = Optional[key]", "index"),
        ("y = 'a' + name", "add"),
        ("y = 3 * 4", "mul"),
        ("y = scheduler.step()", "@step"),
    ],
)
def test_what_only_looks_alike_is_no_site(tmp_path: Path, source: str, name: str) -> None:
    (tmp_path / "a.py").write_text(f"import torch\n{source}\n")
    workspace = open_workspace(tmp_path)
    assert name not in find_op_sites(Knowledge(workspace), RecordedFiles(workspace, ()))
