"""A model's structure as values: from source, from a recording, from a trace, merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.analyzer.trace.recording import RecordedModule, RecordedParameter, Recording, write_recording
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.models import models
from torchtraceap.codemap.module_rows import bytes_text, count_text, rows_of, shape_text
from torchtraceap.codemap.module_text import architecture_text
from torchtraceap.codemap.modules import Basis
from torchtraceap.codemap.project import open_workspace

from ..builders import TraceBuilder
from ..shared import shared

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(self.norm(x))


class Net(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.stem = nn.Linear(4, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 2)
        self.head.weight = nn.Parameter(torch.zeros(2, width))

    def forward(self, x):
        x = skip = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x + skip)


def main():
    model = Net()
    for _ in range(6):
        model(torch.randn(5, 4)).sum().backward()


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def known(tmp_path):
    (tmp_path / "net.py").write_text(SOURCE, "utf-8")
    return Knowledge(open_workspace(tmp_path))


def test_the_source_tells_parameters_places_and_sizes(known):
    (model,) = models(known)
    root = model.root
    assert [module.path for module in root.walk()][:4] == ["", "stem", "blocks", "blocks.0"]
    by_path = {module.path: module for module in root.walk()}
    fc = by_path["blocks.1.fc"]
    assert fc.origin == "torch.nn.Linear"
    assert fc.built_at is not None
    assert (fc.built_at.path, fc.built_at.line, fc.built_at.qualname) == ("net.py", 10, "Block.__init__")
    block = by_path["blocks.1"]
    assert block.defined_at is not None
    assert (block.defined_at.line, block.defined_at.qualname) == (6, "Block")
    assert block.arguments == {"width": "8"}
    assert fc.outputs == ((5, 8),)
    assert fc.calls_per_step == 1.0
    assert root.outputs == ((5, 2),)
    assert root.built_at is not None and root.built_at.qualname == "main"


def test_parameters_are_counted_once_with_their_bytes(known):
    (model,) = models(known)
    totals = model.root.totals()
    parameters = (4 * 8 + 8) + 3 * (16 + 72) + (16 + 2)
    assert (totals.parameters, totals.trainable, totals.bytes) == (parameters, parameters, 4 * parameters)
    assert totals.is_whole


def test_connections_are_those_of_forward(known):
    (model,) = models(known)
    feeds = {module.path: module.feeds for module in model.root.walk()}
    assert set(feeds["stem"]) >= {"head", "blocks.0.norm"}
    assert feeds["blocks.0"] == ("blocks.1",)
    assert feeds["blocks.0.norm"] == ("blocks.0.fc",)


def test_an_input_size_can_be_given(tmp_path):
    (tmp_path / "net.py").write_text(SOURCE.replace("torch.randn(5, 4)", "batch()"), "utf-8")
    known = Knowledge(open_workspace(tmp_path))
    (unsized,) = models(known)
    assert unsized.root.outputs == ((None, 2),) or unsized.root.outputs[0] is None or None in unsized.root.outputs[0]
    (sized,) = models(known, None, (7, 4))
    assert sized.root.outputs == ((7, 2),)


def test_equal_blocks_are_folded_and_counted_together(known):
    (model,) = models(known)
    rows = {row.module.path: row for row in rows_of(model.root)}
    assert rows["blocks.0"].count == 3
    assert rows["blocks.0"].label == "0-2"
    assert rows["blocks.0"].totals.parameters == 3 * 88
    assert rows["blocks.0.fc"].totals.parameters == 3 * 72
    assert "blocks.1" not in rows
    assert len(list(rows_of(model.root, folds=False))) == len(list(model.root.walk()))


def test_the_text_for_a_model_is_compact(known):
    (model,) = models(known)
    lines = architecture_text(model).splitlines()
    assert lines[0] == "(model) Net(width=8, depth=3) -> 5x2; 322; net.py:32"
    assert "blocks.0-2 x 3 Block(width=8) -> 5x8; 264; net.py:20" in lines
    assert "blocks.0.fc Linear(in_features=8, out_features=8) -> 5x8; 216; net.py:10" in lines
    assert "stem -> head" in lines
    assert architecture_text(model, most_lines=2).splitlines()[2].startswith("... ")


def recorded(**changes):
    def module(path, name, **more):
        return RecordedModule(path=path, class_name=name, **more)

    linear = (RecordedParameter("weight", (16, 16), "float16"), RecordedParameter("bias", (16,), "float16"))
    parts = [
        module("", "Net", file=0, line=23, outputs=((9, 2),)),
        module("stem", "Linear", origin="torch.nn.modules.linear.Linear", feeds=("blocks.0",)),
        module("blocks", "ModuleList"),
        module("blocks.0", "Block", file=0, line=12),
        module("blocks.0.fc", "Linear", parameters=linear, outputs=((9, 16),), defined_file=0, defined_line=10),
    ]
    return Recording(files=("/elsewhere/proj/net.py",), modules=tuple(parts), **changes)


def trace_with(tmp_path: Path, recording: Recording, *events):
    import json

    step = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{n}",
            "pid": 1,
            "tid": 1,
            "ts": 1000.0 * n,
            "dur": 900,
        }
        for n in range(1, 5)
    ]
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*step, *events]}), "utf-8")
    write_recording(path, recording)
    return build_timeline(read_trace(path))


def tagged(n, name, at, dur):
    tag = {"ph": "X", "cat": "user_annotation", "name": f"torchtraceap.module {name}", "pid": 1, "tid": 1}
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1}
    return [{**tag, "ts": 1000.0 * n + at, "dur": dur}, {**op, "ts": 1000.0 * n + at + 1, "dur": dur - 2}]


def test_a_recording_wins_for_sizes_and_the_source_for_places(known, tmp_path):
    events = [one for n in range(1, 5) for one in tagged(n, "blocks.0.fc net.py:10", 100, 300)]
    timeline = trace_with(tmp_path, recorded(), *events)
    (model,) = models(known, timeline)
    by_path = {module.path: module for module in model.root.walk()}
    fc = by_path["blocks.0.fc"]
    assert fc.basis is Basis.BOTH
    assert fc.tensors[0].shape == (16, 16)
    assert fc.tensors[0].bytes == 2 * 256
    assert fc.outputs == ((9, 16),)
    assert fc.built_at is not None and (fc.built_at.path, fc.built_at.line) == ("net.py", 10)
    assert fc.arguments["in_features"] == "8"
    assert fc.us_per_step == pytest.approx(298.0)
    assert fc.step_pct == pytest.approx(100.0 * 298.0 / timeline.step_us)
    assert by_path["blocks"].us_per_step is None
    assert "ranges" in model.times_from
    assert set(by_path) == {"", "stem", "blocks", "blocks.0", "blocks.0.fc"}


def test_a_recorded_model_that_the_source_lacks_keeps_the_recorded_places(tmp_path):
    (tmp_path / "net.py").write_text("x = 1\n" * 40, "utf-8")
    timeline = trace_with(tmp_path, recorded())
    (model,) = models(Knowledge(open_workspace(tmp_path)), timeline)
    assert model.root.basis is Basis.RECORDING
    assert model.root.defined_at is not None and model.root.defined_at.line == 23
    assert model.root.children[1].children[0].children[0].path == "blocks.0.fc"


def test_several_recorded_models_have_paths_of_their_own(known, tmp_path):
    modules = (
        RecordedModule("student", "Net"),
        RecordedModule("student.stem", "Linear"),
        RecordedModule("teacher", "Other"),
        RecordedModule("teacher.stem", "Conv2d", feeds=("teacher.head",)),
    )
    events = [one for n in range(1, 5) for one in tagged(n, "teacher.stem other.py:3", 100, 300)]
    found = models(known, trace_with(tmp_path, Recording(modules=modules), *events))
    assert [model.root.class_name for model in found] == ["Net", "Other"]
    teacher = found[1].root
    assert [module.path for module in teacher.walk()] == ["", "stem"]
    assert teacher.children[0].feeds == ("head",)
    assert teacher.children[0].us_per_step == pytest.approx(298.0)


@pytest.mark.parametrize(
    ("project", "classes"),
    [("unet_seg", {"UNet"}), ("resnet_birds", {"BirdNet"}), ("posekit", {"PoseViT"})],
)
def test_module_calls_of_a_trace_find_their_modules(project, classes):
    root = shared("projects", project)
    timeline = build_timeline(read_trace(root / "trace.json.gz"))
    found = models(Knowledge(open_workspace(root)), timeline)
    assert {model.root.class_name for model in found} == classes
    model = found[0].root
    inner = [module for module in model.walk() if not module.children]
    assert all(module.us_per_step is not None for module in inner)
    assert model.us_per_step is not None
    assert sum(module.us_per_step or 0.0 for module in inner) <= model.us_per_step <= timeline.step_us
    assert all(None not in (module.outputs[0] or (None,)) for module in inner)


def test_a_model_that_gives_a_loss_gets_its_sizes_from_what_went_in(tmp_path):
    text = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv(x).mean()


model = Net()
"""
    (tmp_path / "net.py").write_text(text, "utf-8")
    b = TraceBuilder(devices=())
    for number in range(4):
        with b.step(number), b.frame("nn.Module: Net_0"), b.frame("nn.Module: Conv2d_0"):
            given = ("", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1")
            b.leaf("aten::conv2d", shapes=((2, 3, 16, 16), (8, 3, 3, 3), (8,)), concrete=given)
    (model,) = models(Knowledge(open_workspace(tmp_path)), build_timeline(b.build()))
    assert model.root.outputs == ((),)
    assert model.root.inputs == ((2, 3, 16, 16),)


def test_without_module_calls_the_operators_places_give_times():
    root = shared("projects", "unet_seg")
    known = Knowledge(open_workspace(root))
    (with_calls,) = models(known, build_timeline(read_trace(root / "trace.json.gz")))
    (placed,) = models(known, build_timeline(read_trace(root / "trace_nostack.json.gz")))
    assert "operators placed on the lines" in placed.times_from
    expected = {module.path: module for module in with_calls.root.walk()}
    for module in placed.root.walk():
        assert module.outputs == expected[module.path].outputs
        share = expected[module.path].step_pct
        assert module.step_pct is not None and share is not None
        assert share - 8.0 < module.step_pct < share + 8.0
        if share > 3.0:
            assert 0.5 < module.step_pct / share < 2.0


def test_a_trace_of_something_else_says_what_is_missing(known, tmp_path):
    events = [one for n in range(1, 5) for one in tagged(n, "x", 100, 300)]
    (model,) = models(known, trace_with(tmp_path, Recording(), *events))
    assert model.root.us_per_step is None
    assert any("with_stack=True" in note for note in model.notes)


def test_modules_inside_one_another_without_end_are_cut(tmp_path):
    loop = "for _ in range(3000):\n    model = nn.Sequential(nn.Linear(1, 1), model)\n"
    text = f"from torch import nn\nmodel = nn.Linear(1, 1)\n{loop}"
    (tmp_path / "net.py").write_text(text, "utf-8")
    known = Knowledge(open_workspace(tmp_path))
    (model,) = models(known)
    assert 10 < len(list(model.root.walk())) < 200
    assert architecture_text(model)
    paths = [".".join("a" for _ in range(n)) for n in range(1, 3000)]
    recording = Recording(modules=tuple(RecordedModule(path, "Net") for path in ["", *paths]))
    (recorded_model,) = models(known, trace_with(tmp_path, recording))
    assert architecture_text(recorded_model)
    assert not recorded_model.root.totals().is_whole
    assert any("deeper than" in note for note in recorded_model.notes)


def test_a_module_that_ran_beside_the_model_is_no_child(known, tmp_path):
    first = recorded()
    placed = RecordedModule("head", "Linear", defined_file=0, defined_line=27, feeds=("criterion",))
    beside = RecordedModule("criterion", "CrossEntropyLoss", calls_per_step=1.0)
    found = models(known, trace_with(tmp_path, Recording(modules=(*first.modules, placed, beside))))
    assert [one.root.class_name for one in found] == ["Net", "CrossEntropyLoss"]
    assert [child.name for child in found[0].root.children] == ["stem", "blocks", "head"]
    assert not found[0].root.children[-1].feeds


def test_a_child_that_no_line_is_known_of_stays_a_child(known, tmp_path):
    weight = (RecordedParameter("weight", (2, 16), "float16"),)
    last = (RecordedModule("late", "Linear", parameters=weight), RecordedModule("head", "Linear"))
    (model,) = models(known, trace_with(tmp_path, Recording(modules=(*recorded().modules, *last))))
    assert [child.name for child in model.root.children] == ["stem", "blocks", "late", "head"]


def test_a_damaged_recording_is_bounded(known, tmp_path):
    once = models(known, trace_with(tmp_path, recorded()))[0].root.totals()
    parts = recorded().modules
    (model,) = models(known, trace_with(tmp_path, Recording(modules=parts * 50)))
    assert model.root.totals() == once
    assert f"{len(parts) * 49} modules of the recording are left out: they have the path of another one" in model.notes
    many = tuple(RecordedModule(f"blocks.{n}", "Block") for n in range(1, 30_000))
    (model,) = models(known, trace_with(tmp_path, Recording(modules=(*parts, *many))))
    assert sum(1 for _ in model.root.walk()) == 20_000
    assert not model.root.totals().is_whole
    apart = tuple(RecordedModule(f"m{n}", "Block") for n in range(1000))
    found = models(known, trace_with(tmp_path, Recording(modules=apart)))
    assert len(found) == 200
    assert "800 more models of the recording are left out" in found[0].notes


def test_figures_are_short():
    assert [count_text(n) for n in (0, 512, 4096, 25_557_032, 1_300_000_000)] == [
        "0",
        "512",
        "4.10 k",
        "25.6 M",
        "1.30 G",
    ]
    assert count_text(10, is_whole=False) == ">10"
    assert bytes_text(102_000_000) == "102 MB"
    assert [shape_text(one) for one in ((2, None, 3), (), None)] == ["2x?x3", "scalar", ""]
