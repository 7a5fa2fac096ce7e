"""By ranges and module calls: lines of what ran itself, calls of what ran through the program's own code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchtraceap.analyzer.findings import Grain, How
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import Trace
from torchtraceap.analyzer.trace.recording import RecordedModule, Recording
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.recorded import RecordedFiles
from torchtraceap.codemap.regions import Regions
from torchtraceap.codemap.statements import Place, location_of, statement_at

from ..builders import TraceBuilder, row_of

MODEL = """\
import torch
from torch import nn
from transformers import ViTModel


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = ViTModel(config)
        self.proj = nn.Linear(4, 4)

    def encode(self, x):
        return self.vision(x).last_hidden_state

    def forward(self, x):
        image = self.encode(x)
        image = image.exp()
        return self.proj(image)


def other(x):
    return x.exp()
"""


def played(module: str) -> tuple[Trace, dict[str, int]]:
    """One call of the model: a library's module, an operator, a layer. `module` opens it, an event or a range."""
    b = TraceBuilder(devices=())
    handles: dict[str, int] = {}
    opened = b.frame(module) if module.startswith("nn.Module") else b.annotation(module)
    with b.step(0), opened:
        with b.frame("nn.Module: ViTModel_0"):
            handles["library"] = b.leaf("aten::embedding", us=20)
        handles["exp"] = b.leaf("aten::exp", us=20)
        with b.frame("nn.Module: Linear_0"):
            handles["linear"] = b.leaf("aten::linear", us=20)
    trace = b.build()
    return trace, {name: row_of(trace, handle) for name, handle in handles.items()}


def regions(root: Path, trace: Trace, text: str = MODEL) -> Regions:
    (root / "model.py").write_text(text)
    workspace = open_workspace(root)
    return Regions(build_timeline(trace), Knowledge(workspace), RecordedFiles(workspace, ()))


@pytest.mark.parametrize(("event", "line", "callers"), [("library", 13, [16]), ("exp", 17, []), ("linear", 18, [])])
def test_what_ran_through_a_method_of_the_program_is_followed_there(
    tmp_path: Path, event: str, line: int, callers: list[int]
) -> None:
    trace, rows = played("nn.Module: Clip_0")
    place = regions(tmp_path, trace).locate(rows[event])
    assert place is not None and (place.location.line, place.location.grain) == (line, Grain.LINE)
    assert place.location.how is How.MODULE and [caller.line for caller in place.callers] == callers


def test_what_cannot_be_followed_is_known_by_its_call_only(tmp_path: Path) -> None:
    trace, rows = played("nn.Module: Clip_0")
    text = MODEL + "\n\nclass Other:\n    def encode(self, x):\n        return x\n"
    place = regions(tmp_path, trace, text).locate(rows["library"])
    assert place is not None and (place.location.line, place.location.grain) == (16, Grain.CALL)


def test_a_tag_of_the_recording_run_names_the_class_of_its_module(tmp_path: Path) -> None:
    trace, rows = played("torchtraceap.module clip model.py:6")
    modules = (RecordedModule("", "Wrapper"), RecordedModule("clip", "Clip"))
    assert regions(tmp_path, trace).locate(rows["exp"]) is None
    place = regions(tmp_path, replace(trace, recording=Recording(modules=modules))).locate(rows["exp"])
    assert place is not None and (place.location.line, place.location.how) == (17, How.MODULE)


def test_a_line_elsewhere_than_in_the_module_that_ran_is_not_allowed(tmp_path: Path) -> None:
    trace, rows = played("nn.Module: Clip_0")
    found = regions(tmp_path, trace)
    file = Knowledge(open_workspace(tmp_path)).file("model.py")

    def at(line: int, qualname: str, *callers: Place) -> Place:
        statement = statement_at(file, line)
        assert statement is not None
        location = location_of(file, statement, qualname, How.ORDER)
        return Place(location, line, tuple(caller.location for caller in callers))

    assert found.allow(rows["exp"], at(17, "Clip.forward"))
    assert found.allow(rows["exp"], at(13, "Clip.encode", at(16, "Clip.forward")))
    assert not found.allow(rows["exp"], at(22, "other"))


def test_where_no_module_is_the_workspace_s_any_line_is_allowed(tmp_path: Path) -> None:
    trace, rows = played("nn.Module: Unknown_0")
    found = regions(tmp_path, trace)
    assert found.locate(rows["exp"]) is None
    file = Knowledge(open_workspace(tmp_path)).file("model.py")
    statement = statement_at(file, 22)
    assert statement is not None and found.allow(rows["exp"], Place(location_of(file, statement, "other"), 22))
