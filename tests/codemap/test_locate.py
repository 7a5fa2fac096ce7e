"""From events to statements on small built traces: every recording convention, moved, edited and ambiguous files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from torchtraceap.analyzer.findings import How
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import Category
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.statements import Place

from ..builders import TraceBuilder, row_of

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        y = self.proj(x)
        z = torch.relu(y) + x
        return z @ y


def main():
    net = Net()
    for _ in range(3):
        out = net(torch.rand(2, 4))
        out.sum().item()
"""

CALL_IMPL = "torch/nn/modules/module.py(1): _call_impl"


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def play(b: TraceBuilder, file: str) -> dict[str, int]:
    """One step of `main` with Python frames; handles of some events."""
    handles: dict[str, int] = {}
    with b.step(0), b.frame(f"{file}(16): main"):
        b.call("<built-in method rand of type object at 0x7f>")
        with b.frame("nn.Module: Net_0"), b.frame(CALL_IMPL), b.frame(f"{file}(10): forward"):
            with b.frame("nn.Module: Linear_0"), b.frame(CALL_IMPL), b.frame("<built-in function linear>"):
                handles["linear"] = b.leaf("aten::linear", us=20)
            with b.frame("<built-in method relu of type object at 0x7f>"):
                handles["relu"] = b.leaf("aten::relu", us=20)
            handles["add"] = b.leaf("aten::add", us=20)
            handles["matmul"] = b.leaf("aten::matmul", us=20)
        with b.frame("<built-in method sum of Tensor object at 0x7f>"):
            b.leaf("aten::sum", us=20)
        with b.frame("<built-in method item of Tensor object at 0x7f>"):
            handles["item"] = b.leaf("aten::item", us=20)
    return handles


def located(root: Path, file: str, event: str) -> Place | None:
    b = TraceBuilder(devices=())
    handles = play(b, file)
    trace = b.build()
    return Locator(build_timeline(trace), open_workspace(root)).locate(row_of(trace, handles[event]))


@pytest.mark.parametrize(
    ("event", "line", "caller_lines"),
    [("linear", 11, [19]), ("relu", 12, [19]), ("add", 12, [19]), ("matmul", 13, [19]), ("item", 20, [])],
)
def test_frames_are_aligned_with_their_bodies(tmp_path: Path, event: str, line: int, caller_lines: list[int]) -> None:
    place = located(write(tmp_path, model=MODEL), "model.py", event)
    assert place is not None and place.location.how is How.STACK
    assert place.location.line == line and place.location.confidence > 0.8
    assert [caller.line for caller in place.callers] == caller_lines


@pytest.mark.parametrize(
    "recorded",
    ["/home/somebody/proj/src/model.py", "/app/src/model.py", "src/model.py", "model.py", "C:\\code\\src\\model.py"],
)
def test_paths_of_other_machines_find_the_file(tmp_path: Path, recorded: str) -> None:
    root = write(tmp_path, src__model=MODEL, other__model="def main():\n    pass\n", src__unrelated=MODEL)
    place = located(root, recorded, "matmul")
    assert place is not None and place.location.path == "src/model.py" and place.location.confidence > 0.8


def test_a_file_of_that_name_with_other_functions_is_not_taken(tmp_path: Path) -> None:
    assert located(write(tmp_path, model="def train():\n    pass\n"), "model.py", "matmul") is None


def test_a_library_s_file_is_not_mistaken_for_one_of_the_workspace(tmp_path: Path) -> None:
    root = write(tmp_path, functional="def relu(x):\n    return x\n\n\ndef forward(x):\n    return relu(x)\n")
    b = TraceBuilder(devices=())
    with b.step(0), b.frame("torch/nn/functional.py(1500): relu"):
        handle = b.leaf("aten::relu")
    trace = b.build()
    assert Locator(build_timeline(trace), open_workspace(root)).locate(row_of(trace, handle)) is None


def test_two_files_that_fit_equally_are_named_as_ambiguous(tmp_path: Path) -> None:
    place = located(write(tmp_path, a__model=MODEL, b__model=MODEL), "model.py", "matmul")
    assert place is not None and place.location.confidence <= 0.5
    assert "fits as well" in place.note and "/model.py" in place.note


def test_lines_inserted_since_the_recording_lower_the_confidence(tmp_path: Path) -> None:
    place = located(write(tmp_path, model="# a\n# b\n# c\n" + MODEL), "model.py", "matmul")
    assert place is not None and place.location.line == 16
    assert place.location.confidence < 0.8 and "edited" in place.note


def test_a_syntax_error_places_nothing(tmp_path: Path) -> None:
    assert located(write(tmp_path, model=MODEL + "def broken(:\n"), "model.py", "matmul") is None


def test_call_stacks_name_the_executed_line(tmp_path: Path) -> None:
    root = write(tmp_path, train__model=MODEL)
    stack = (
        "/opt/lib/python3.9/site-packages/torch/nn/functional.py(1063): relu;"
        "train/model.py(12): forward;/opt/lib/python3.9/site-packages/torch/nn/modules/module.py(1051): _call_impl;"
        "train/model.py(19): main"
    )
    b = TraceBuilder(devices=())
    with b.step(0):
        handle = b.leaf("aten::relu", stack=stack)
    trace = b.build()
    place = Locator(build_timeline(trace), open_workspace(root)).locate(row_of(trace, handle))
    assert place is not None and (place.location.line, place.location.qualname) == (12, "Net.forward")
    assert [(c.line, c.qualname) for c in place.callers] == [(19, "main")]


def test_a_frame_on_the_stack_at_the_start_begins_at_its_recorded_line(tmp_path: Path) -> None:
    source = (
        "def fit(prof, x):\n    a = x.exp()\n    prof.step()\n    b = x.exp()\n    c = x.exp()\n    return a, b, c\n"
    )
    b = TraceBuilder(devices=())
    with b.step(0), b.frame("fit.py(3): fit"):
        b.call("torch/profiler/profiler.py(700): step")
        handles = []
        for _ in range(2):
            with b.frame("<built-in method exp of Tensor object at 0x7f>"):
                handles.append(b.leaf("aten::exp"))
    trace = b.build()
    locator = Locator(build_timeline(trace), open_workspace(write(tmp_path, fit=source)))
    places = [locator.locate(row_of(trace, handle)) for handle in handles]
    assert [place and place.location.line for place in places] == [4, 5]


TAGGED = """\
import torch
from torch.profiler import record_function

STAGE = "stage"
NAMES = dict(x="y")


def phase(label):
    def outer(fn):
        def inner(*args):
            with record_function(label):
                return fn(*args)
        return inner
    return outer


class Timed(record_function):
    def __init__(self, what="idle"):
        super().__init__(what)


@phase("net.encode")
def encode(x):
    y = torch.relu(x)
    return y.softmax(-1)


def run(x, i):
    with record_function("literal"):
        x = x.exp()
        x = x.sin()
    with record_function(STAGE + "/" + str(i)):
        x = x.cos()
    with torch.profiler.record_function(f"block_{i}"):
        x = x.tan()
    with section("late"):
        x = x.atan()
    with Timed("slow"):
        x = x.acos()
    return encode(x)


@contextlib.contextmanager
def section(name):
    with record_function(f"net/{name}"):
        yield
"""


@pytest.mark.parametrize(
    ("tag", "op", "line"),
    [
        ("literal", "aten::sin", 31),
        ("stage/7", "aten::cos", 33),
        ("block_3", "aten::tan", 35),
        ("net.encode", "aten::softmax", 25),
        ("net/late", "aten::atan", 37),
        ("slow", "aten::acos", 39),
    ],
)
def test_named_ranges_place_events_of_a_trace_without_stacks(tmp_path: Path, tag: str, op: str, line: int) -> None:
    inside = {"literal": ["aten::exp", "aten::sin"], "net.encode": ["aten::relu", "aten::softmax"]}.get(tag, [op])
    b = TraceBuilder(devices=())
    handles = {}
    with b.step(0), b.annotation(tag):
        for name in inside:
            handles[name] = b.leaf(name)
    trace = b.build()
    locator = Locator(build_timeline(trace), open_workspace(write(tmp_path, run=TAGGED)))
    place = locator.locate(row_of(trace, handles[op]))
    assert place is not None and place.location.how is How.TAG and place.location.line == line


def test_a_range_whose_events_do_not_fit_is_shown_at_its_own_line(tmp_path: Path) -> None:
    b = TraceBuilder(devices=())
    with b.step(0), b.annotation("literal"):
        handle = b.leaf("aten::cholesky")
    trace = b.build()
    place = Locator(build_timeline(trace), open_workspace(write(tmp_path, run=TAGGED))).locate(row_of(trace, handle))
    assert place is not None and place.location.line == 29 and place.location.confidence < 0.7


def test_a_name_used_twice_places_nothing(tmp_path: Path) -> None:
    b = TraceBuilder(devices=())
    with b.step(0), b.annotation("literal"):
        handle = b.leaf("aten::sin")
    trace = b.build()
    root = write(tmp_path, run=TAGGED, again=TAGGED)
    assert Locator(build_timeline(trace), open_workspace(root)).locate(row_of(trace, handle)) is None


def test_module_calls_place_events_where_no_frame_is_the_workspace_s(tmp_path: Path) -> None:
    b = TraceBuilder(devices=())
    with b.step(0), b.frame("nn.Module: Net_0"):
        with b.frame("nn.Module: Linear_0"):
            linear = b.leaf("aten::linear")
        b.leaf("aten::relu")
        b.leaf("aten::add")
        matmul = b.leaf("aten::matmul")
    trace = b.build()
    locator = Locator(build_timeline(trace), open_workspace(write(tmp_path, model=MODEL)))
    for handle, line in ((linear, 11), (matmul, 13)):
        place = locator.locate(row_of(trace, handle))
        assert place is not None and place.location.how is How.MODULE and place.location.line == line


def test_python_ids_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    b = TraceBuilder(devices=())
    handles = play(b, "model.py")
    trace = b.build()
    python = trace.rows(Category.PYTHON_FUNCTION)
    ids, parents = trace.python_id.copy(), trace.python_parent.copy()
    ids[python] = np.arange(len(python))
    parents[python] = np.roll(ids[python], 1)
    circular = replace(trace, python_id=ids, python_parent=parents)
    place = Locator(build_timeline(circular), open_workspace(write(tmp_path, model=MODEL))).locate(
        row_of(trace, handles["matmul"])
    )
    assert place is not None and place.location.line == 13


def test_a_tag_of_many_unknown_parts_is_matched_in_no_time(tmp_path: Path) -> None:
    """Its pattern would try every way of sharing the name out between the parts."""
    parts = "a".join("{x}" for _ in range(12))
    text = f'from torch.profiler import record_function\n\n\ndef run(x):\n    with record_function(f"{parts}!"):\n'
    text += "        x.relu()\n"
    b = TraceBuilder(devices=())
    with b.step(0), b.annotation("a" * 20_000):
        handle = b.leaf("aten::relu")
    trace = b.build()
    Locator(build_timeline(trace), open_workspace(write(tmp_path, model=text))).locate(row_of(trace, handle))
