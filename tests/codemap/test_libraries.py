"""Time inside a library's model: shown at the call that builds the model, with the library's line in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from torchtraceap.analyzer.detected import Analysis, Detected
from torchtraceap.analyzer.findings import How
from torchtraceap.analyzer.patterns.base import Candidate, Occurrence
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.edit import Edit
from torchtraceap.analyzer.trace.model import Trace
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.library_sites import find_sites
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.recorded import RecordedFiles
from torchtraceap.codemap.statements import Place

from ..builders import TraceBuilder, row_of
from .test_place import pattern

TRAIN = """\
import timm
import torch
import torchvision
from torchvision.models import resnet50


def main():
    student = resnet50(weights=None)
    teacher = timm.create_model("vit_base_patch16_224", pretrained=True)
    for _ in range(3):
        images = torch.rand(2, 3, 8, 8)
        out = student(images)
        with torch.no_grad():
            wanted = teacher(images)
        (out - wanted).mean().backward()
"""
CALL_IMPL = "torch/nn/modules/module.py(1): _call_impl"
RESNET = "torchvision/models/resnet.py"
VIT = "/opt/lib/python3.11/site-packages/timm/models/vision_transformer.py"


def located(root: Path, text: str, trace: Trace, handle: int) -> Place | None:
    (root / "train.py").write_text(text)
    return Locator(build_timeline(trace), open_workspace(root)).locate(row_of(trace, handle))


def inside(file: str, classes: tuple[str, ...], *, frames: bool = True, main: str = "train.py(7): main") -> tuple:
    """A step that calls a model of a library; the trace and one operator inside."""
    b = TraceBuilder(devices=())
    with b.step(0):
        stack = [main] if main else []
        for name in classes:
            stack += [f"nn.Module: {name}_0", *([CALL_IMPL, f"{file}(90): forward"] if frames else [])]
        handle = _nested(b, stack)
    trace = b.build()
    return trace, handle


def _nested(b: TraceBuilder, stack: list[str]) -> int:
    if not stack:
        return b.leaf("aten::conv2d", us=50)
    with b.frame(stack[0]):
        return _nested(b, stack[1:])


@pytest.mark.parametrize(
    ("file", "classes", "built"),
    [(RESNET, ("ResNet", "Bottleneck", "Conv2d"), 8), (VIT, ("VisionTransformer", "Block"), 9)],
)
def test_the_call_that_builds_the_model_is_named_beside_the_one_that_runs_it(
    tmp_path: Path, file: str, classes: tuple[str, ...], built: int
) -> None:
    found = located(tmp_path, TRAIN, *inside(file, classes))
    assert found is not None and found.inside is not None and found.inside.built is not None
    assert (found.inside.built.line, found.location.path) == (built, "train.py")
    assert found.inside.what == f"{file.rpartition('site-packages/')[2]}:90 (forward)"


def test_modules_alone_lead_to_the_model_s_construction(tmp_path: Path) -> None:
    for class_name, line in (("ResNet", 8), ("VisionTransformer", None)):
        found = located(tmp_path, TRAIN, *inside("", (class_name, "Conv2d"), frames=False, main=""))
        if line is None:  # neither call is named like it, and there are two
            assert found is None
        else:
            assert found is not None and (found.location.line, found.location.how) == (line, How.MODULE)
            assert 0.5 < found.location.confidence < 0.9 and "ResNet" in (found.inside.what if found.inside else "")


def test_the_only_library_model_is_named_where_the_trace_tells_nothing(tmp_path: Path) -> None:
    text = "import torch, timm\n\nmodel = timm.create_model('resnet18')\nmodel(torch.rand(1, 3, 8, 8))\n"
    for source, is_found in ((text, True), (text + "\n\nclass Net(torch.nn.Module):\n    pass\n", False)):
        b = TraceBuilder(devices=())
        with b.step(0):
            handle = b.leaf("aten::conv2d", us=50, sequence=4)
            b.leaf("ConvolutionBackward0", us=80, sequence=4)
        trace = b.build()
        found = located(tmp_path, source, trace, handle)
        assert (found is not None and found.inside is not None) == is_found
        if found is not None and is_found:
            assert (found.location.line, found.location.how) == (3, How.OPERATOR) and found.location.confidence < 0.5


def test_the_name_that_is_called_tells_two_models_of_a_library_apart(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torchvision.models import resnet18, resnet50\n\n\ndef main():\n    small = resnet18()\n"
        "    large = resnet50()\n    for _ in range(3):\n        y = large(torch.rand(1, 3, 8, 8))\n"
    )
    found = located(tmp_path, text, *inside(RESNET, ("ResNet",), main="train.py(8): main"))
    assert found is not None and found.location.line == 9
    assert found.inside is not None and found.inside.built is not None and found.inside.built.line == 7


def test_a_model_of_the_workspace_is_no_library_s(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("import torch\n\n\nclass ResNet(torch.nn.Module):\n    pass\n")
    assert located(tmp_path, TRAIN, *inside("", ("ResNet",), frames=False, main="")) is None


def test_transforms_and_losses_are_no_models(tmp_path: Path) -> None:
    trace, handle = inside("torchvision/transforms/transforms.py", ("Resize",))
    found = located(tmp_path, TRAIN, trace, handle)
    assert found is not None and found.inside is None


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from transformers import AutoModel\nm = AutoModel.from_pretrained('google/vit-base')", "transformers"),
        ("import transformers as t\nm = t.ViTForImageClassification(config)", "transformers"),
        ("import transformers as t\nm = t.AutoImageProcessor.from_pretrained('a')", None),
        ("from transformers import ViTConfig\nm = ViTConfig()", None),
        ("import segmentation_models_pytorch as smp\nm = smp.Unet('resnet34')", "segmentation_models_pytorch"),
        ("from ultralytics import YOLO\nm = YOLO('yolo11n.pt')", "ultralytics"),
        ("import torch\nm = torch.hub.load('pytorch/vision', 'resnet18')", ""),
        ("import open_clip\nm, _, p = open_clip.create_model_and_transforms('ViT-B-32')", "open_clip"),
        ("from torchvision.models import get_model\nm = get_model('resnet18')", "torchvision"),
        ("from torchvision.models.detection import fasterrcnn_resnet50_fpn as f\nm = f()", "torchvision"),
        ("import torchvision\nm = torchvision.models.ResNet50_Weights.DEFAULT.transforms()", None),
        ("from vit_pytorch import ViT\nm = ViT(dim=4)", "vit_pytorch"),
        ("import torch\nm = torch.nn.Linear(2, 2)", None),
        ("from models import Net\nm = Net()", None),
        ("from pathlib import Path\nm = Path()", None),
    ],
)
def test_what_builds_a_library_s_model(tmp_path: Path, source: str, names: str | None) -> None:
    (tmp_path / "a.py").write_text("import torch\n" + source + "\n")
    (tmp_path / "models.py").write_text("class Net:\n    pass\n")
    workspace = open_workspace(tmp_path)
    sites = find_sites(Knowledge(workspace), RecordedFiles(workspace, ("a.py",)))
    assert [site.library for site in sites] == ([] if names is None else [names])
    assert all(site.target == "m" for site in sites)


def test_a_finding_inside_a_library_is_shown_where_the_model_is_built(tmp_path: Path) -> None:
    b = TraceBuilder(devices=())
    with b.frame("train.py(8): main"):
        handles = []
        for step in range(4):
            with b.step(step):
                handles.append(_nested(b, ["nn.Module: ResNet_0", CALL_IMPL, "timm/models/resnet.py(40): forward"]))
    trace = b.build()
    rows = [row_of(trace, handle) for handle in handles]
    occurrences = tuple(Occurrence(row, Edit(removed_ops=np.array([row])), cost_rows=np.array([row])) for row in rows)
    candidate = Candidate("work is repeated", "a cache", occurrences, ())
    analysis = Analysis(build_timeline(trace), (Detected(pattern("made-up"), candidate),))
    text = (
        "import torch\nimport timm\n\n\ndef main(x):\n    model = timm.create_model('resnet18')\n"
        "    for _ in range(4):\n        x = model(x)\n"
    )
    (tmp_path / "train.py").write_text(text)
    (found,) = place(analysis, open_workspace(tmp_path)).findings
    assert found.location is not None and found.location.line == 6
    related = [(one.message, one.location.line) for one in found.related]
    assert ("the time is spent in main", 8) in related
    assert ("the time is spent inside timm/models/resnet.py:40 (forward)", 8) in related
