"""Which program of a workspace a trace is of."""

from __future__ import annotations

from pathlib import Path

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.recorded import RecordedFiles
from torchtraceap.codemap.sequence.likeness import fits_of
from torchtraceap.codemap.sequence.placer import SequencePlacer
from torchtraceap.codemap.sequence.walker import Walker

from ...builders import TraceBuilder, row_of

DECOY = """\
import torch

if __name__ == "__main__":
    for _ in range({number}):
        torch.rand({number}, 4).{method}()
"""
MAIN = """\
from layers import Net

net = Net()
for _ in range(3):
    net(4)
"""
LAYERS = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, size):
        return torch.cdist(torch.rand(size, 2), torch.rand(size, 2)).cumsum(0)
"""
UNCALLED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cumsum(self.layer(x), 0)
"""


GATE = """\
import torch


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.cos()
"""


def crowded(root: Path) -> None:
    for number in range(12):
        method = ("sum", "abs", "exp")[number % 3]
        (root / f"a_decoy{number}.py").write_text(DECOY.format(number=number, method=method))
    (root / "layers.py").write_text(LAYERS)
    (root / "zz_main.py").write_text(MAIN + "\nimport torch\n")


def test_the_script_whose_words_a_trace_shows_is_tried_before_many_others(tmp_path: Path) -> None:
    crowded(tmp_path)
    b, handles = TraceBuilder(devices=()), []
    for number in range(3):
        with b.step(number):
            for name in ("rand", "rand", "cdist"):
                b.leaf(f"aten::{name}")
            handles.append(b.leaf("aten::cumsum"))
    trace = b.build()
    place = Locator(build_timeline(trace), open_workspace(tmp_path)).locate(row_of(trace, handles[1]))
    assert place is not None and (place.location.path, place.line) == ("layers.py", 7)
    assert [caller.path for caller in place.callers] == ["zz_main.py"]


def test_words_of_imported_files_count_and_rare_ones_more(tmp_path: Path) -> None:
    crowded(tmp_path)
    workspace = open_workspace(tmp_path)
    scripts = ["a_decoy0.py", "a_decoy1.py", "zz_main.py"]
    known, files = Knowledge(workspace), RecordedFiles(workspace, ())
    fits = fits_of(known, files, scripts, {"rand", "cdist", "exp"})
    assert max(scripts, key=fits.__getitem__) == "zz_main.py"
    assert set(fits_of(known, files, scripts, ()).values()) == {0.0}


def test_a_model_that_nothing_calls_is_placed_without_callers(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(UNCALLED)
    b, handles = TraceBuilder(devices=()), []
    for number in range(3):
        with b.step(number):
            b.leaf("aten::linear")
            handles.append(b.leaf("aten::cumsum"))
    trace = b.build()
    place = Locator(build_timeline(trace), open_workspace(tmp_path)).locate(row_of(trace, handles[1]))
    assert place is not None and place.line == 11 and place.callers == ()


def test_a_model_of_layers_alone_that_nothing_calls_has_no_places(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("from torch import nn\n\nnet = nn.Sequential(nn.Linear(4, 4), nn.Tanh())\n")
    b, handles = TraceBuilder(devices=()), []
    for number in range(3):
        with b.step(number):
            handles += [b.leaf("aten::linear"), b.leaf("aten::tanh")]
    trace = b.build()
    workspace = open_workspace(tmp_path)
    placer = SequencePlacer(build_timeline(trace), Knowledge(workspace), RecordedFiles(workspace, ()))
    assert [placer.locate(row_of(trace, handle)) for handle in handles] == [None] * 6


def test_a_backward_pass_written_by_hand_has_no_callers(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(GATE)
    (tmp_path / "main.py").write_text("import torch\nfrom gate import Gate\n\nGate.apply(torch.rand(4)).sum()\n")
    walker = Walker(Knowledge(open_workspace(tmp_path)))
    walker.walk_script("main.py")
    (cos,) = [node for node in walker.program.nodes if node is not None and "cos" in node.names]
    assert (cos.site.path, cos.site.qualname) == ("gate.py", "Gate.backward")
    assert cos.site.caller is None or cos.site.caller.path == ""
