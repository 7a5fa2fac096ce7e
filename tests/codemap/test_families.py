"""Model families by what the source defines and asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import shared
from torchtraceap.analyzer.timeline.family import Family
from torchtraceap.codemap.families import recognise
from torchtraceap.codemap.project import open_workspace


def _family(root: Path, **files: str) -> Family | None:
    texts = {f"{name}.py": text for name, text in files.items()}
    return recognise(open_workspace(root, texts), texts)


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('import timm\nnet = timm.create_model("swin_tiny_patch4_window7_224")\n', Family.WINDOWED),
        ('import timm\nnet = timm.create_model("vit_base_patch16_224", pretrained=True)\n', Family.VIT),
        ('import timm\nnet = timm.create_model("resnet50")\n', Family.CNN),
        ("from torchvision.models import resnet18\nnet = resnet18(weights=None)\n", Family.CNN),
        ("import torchvision\nnet = torchvision.models.swin_t()\n", Family.WINDOWED),
        ("from torchvision.models.video import r3d_18\nnet = r3d_18()\n", Family.VIDEO),
        (
            'from transformers import AutoModel\nnet = AutoModel.from_pretrained("facebook/detr-resnet-50")\n',
            Family.DETECTION,
        ),
        ("import segmentation_models_pytorch as smp\nnet = smp.Unet('resnet34', classes=2)\n", Family.UNET),
        ("from torch import nn\n\nclass WindowAttention(nn.Module):\n    pass\n", Family.WINDOWED),
        (
            "from torch import nn\n\nclass MSDeformAttn(nn.Module):\n    pass\n\nbody = nn.Conv2d(3, 8, 3)\n",
            Family.DETECTION,
        ),
        ("from torch import nn\nnet = nn.Sequential(nn.Conv3d(3, 8, 3), nn.ReLU())\n", Family.VIDEO),
        ("from torch import nn\nnet = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())\n", Family.CNN),
        (
            "from torch import nn\n\nclass GaussianDiffusion:\n    pass\n\nclass Unet(nn.Module):\n    pass\n",
            Family.GENERATIVE,
        ),
        ("import torch\nrandom = torch.Generator()\nrandom.manual_seed(0)\n", None),
        ("import cv2\ncamera = cv2.VideoCapture(0)\n", None),
        ("from torch import nn\nnet = nn.Linear(3, 8)\n", None),
        (
            'import timm\nnets = [timm.create_model("deit_tiny_patch16_224"), timm.create_model("swin_tiny_patch4")]\n',
            None,
        ),
        ("def broken(:\n", None),
    ],
)
def test_one_file(tmp_path: Path, text: str, family: Family | None) -> None:
    assert _family(tmp_path, model=text) == family


def test_only_the_files_asked_about_count(tmp_path: Path) -> None:
    texts = {"zoo.py": "class SwinTransformer: ...\n", "main.py": "from torch import nn\nnet = nn.Conv2d(1, 1, 1)\n"}
    workspace = open_workspace(tmp_path, texts)
    assert recognise(workspace, ["main.py"]) is Family.CNN
    assert recognise(workspace, ["zoo.py"]) is Family.WINDOWED
    assert recognise(workspace, ["absent.py"]) is None


@pytest.mark.parametrize(
    ("project", "family"), [("resnet_birds", Family.CNN), ("unet_seg", Family.UNET), ("posekit", Family.VIT)]
)
def test_projects(project: str, family: Family) -> None:
    workspace = open_workspace(shared("projects", project, "src"))
    assert recognise(workspace, workspace.paths()) is family
