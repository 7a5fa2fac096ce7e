"""Which family of vision models the source holds: by the classes it defines and calls, and the models it asks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ..analyzer.timeline.family import Family, family_of_classes
from .fixes.outline import Outline, last_name, outline
from .workspace import Workspace

_MODELS = (
    (Family.DETECTION, r"detr|deformable_detr|rt_?detr|grounding_dino|mask2former|maskformer"),
    (Family.GENERATIVE, r"stable-diffusion|diffusion|ddpm|dit_|vqgan|vqvae|stylegan|biggan"),
    (Family.VIDEO, r"swin3d|mvit|r3d|mc3_|r2plus1d|s3d|x3d|i3d|slowfast|timesformer|videomae|vivit|video_swin"),
    (Family.WINDOWED, r"swin|maxvit|maxxvit"),
    (Family.UNET, r"unet|u2net|segresnet"),
    (Family.VIT, r"vit_|vit-|deit|beit|eva0?2?_|dinov2|clip-vit|siglip|flexivit|samvit"),
    (
        Family.CNN,
        r"resnet|resnext|wide_resnet|convnext|efficientnet|mobilenet|regnet|densenet|vgg|alexnet|inception|googlenet"
        r"|shufflenet|squeezenet|mnasnet|dla|hrnet|darknet|yolo|fasterrcnn|maskrcnn|retinanet|fcos|ssd|deeplab|fcn_",
    ),
)
"""How models are called where they are asked for by name, by family: timm, torchvision, transformers, hubs."""
_MODEL_PATTERNS = tuple((family, re.compile(rf"(^|[/_.-])({pattern})", re.IGNORECASE)) for family, pattern in _MODELS)
_BUILDERS = ("create_model", "from_pretrained", "load", "get_model", "build_model", "get_network")
_LIBRARIES = (
    "timm.",
    "torchvision.models",
    "transformers.",
    "segmentation_models_pytorch.",
    "monai.networks",
    "diffusers.",
)
_ABOVE = (Family.DETECTION, Family.GENERATIVE)
"""Families that are built with parts of the others: a backbone, a U-Net, attention."""


def recognise(workspace: Workspace, files: Iterable[str]) -> Family | None:
    """The family of the model that these files (paths of the workspace) define or build; None where that is not plain.

    A file that defines models of several families tells nothing, unless one is a part of the other.
    """
    found: set[Family] = set()
    has_convolutions = False
    for path in files:
        file = outline(workspace.file(path))
        if file is None:
            continue
        names = set(_class_names(file))
        has_convolutions |= "Conv2d" in names
        found |= {family for family in (family_of_classes(names), *_asked_for(file)) if family is not None}
        if "Conv3d" in names and not names & {"Conv2d"}:
            found.add(Family.VIDEO)
    if not found and has_convolutions:
        return Family.CNN
    return _one_of(found)


def _one_of(found: set[Family]) -> Family | None:
    """The one family, convolution backbones and the parts of larger models left out."""
    for family in _ABOVE:
        if family in found:
            return family
    if found == {Family.UNET, Family.VIDEO}:
        return Family.VIDEO
    plain = found - {Family.CNN} or found
    return next(iter(plain)) if len(plain) == 1 else None


def _class_names(file: Outline) -> Iterator[str]:
    """Classes that a file defines, and what it calls that is named like one."""
    for node in file.nodes:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Call) and last_name(node.func)[:1].isupper() and _is_of_layer(file, node):
            yield last_name(node.func)


def _is_of_layer(file: Outline, call: ast.Call) -> bool:
    """Whether a call may make a layer: `torch.Generator` and `numpy.random.Generator` make numbers."""
    return re.match(r"(torch\.(?!nn\b)|numpy\b)", file.dotted(call.func)) is None


def _asked_for(file: Outline) -> Iterator[Family]:
    """Families of the models that a file asks a library for."""
    for node in file.nodes:
        if not isinstance(node, ast.Call):
            continue
        dotted = file.dotted(node.func)
        names = [dotted.rpartition(".")[2]] if dotted.startswith(_LIBRARIES) else []
        if last_name(node.func) in _BUILDERS:
            names += [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        for name in names:
            family = next((family for family, pattern in _MODEL_PATTERNS if pattern.search(name)), None)
            if family is not None:
                yield family
