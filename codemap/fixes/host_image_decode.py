"""Decoding on the host: say where it is done, and switch to the faster reader that is there already."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import loader_argument, loaders_at
from .outline import Outline, last_name, outline
from .resolve import Resolver, Value
from .samples import calls_behind
from .scene import Scene, scene, searcher

_SLUG = "host-image-decode"
_CALLS = re.compile(
    r"^(PIL\.Image\.open|cv2\.(imread|imdecode|VideoCapture)|torchvision\.io\.(read_image|read_video|decode_jpeg"
    r"|decode_image|decode_png)|imageio(\.v\d)?\.(imread|mimread|get_reader|imiter)|av\.open|skimage\.io\.imread"
    r"|decord\.VideoReader|skvideo\.io\.\w+|tifffile\.imread|torchvision\.datasets\.folder\.\w*loader)$"
)
_SWITCH = re.compile(r"^use_(decord|torchcodec|turbojpeg|turbo_jpeg|nvjpeg|accimage|dali)$")
"""Options by which code chooses a faster reader."""
_SWITCH_IN_TEXT = re.compile(_SWITCH.pattern.replace("^", r"\b").replace("$", r"\b"))
_FOLDERS = frozenset({"ImageFolder", "DatasetFolder", "ImageNet", "Kinetics", "UCF101", "CocoDetection"})
"""Data sets of torchvision that decode."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    if (switch := _switched_off(view)) is not None:
        return switch
    for frame in view.frames:
        for call in frame.calls():
            if _decodes(frame.outline, call):
                return _shown(Value(frame.outline, call), case, in_worker=False)
    for loader in loaders_at(view):
        if (found := _behind(view.resolver, loader)) is not None:
            return _shown(found, case, in_worker=True)
    return None


def _decodes(file: Outline, call: ast.Call) -> bool:
    """Whether a call decodes on the host."""
    on_device = any(keyword.arg == "device" for keyword in call.keywords)
    return _CALLS.match(file.dotted(call.func)) is not None and not on_device


def _behind(resolver: Resolver, loader: Value) -> Value | None:
    """The call that decodes, in the data set behind a loader or in what that calls."""
    given = loader_argument(resolver, loader, "dataset").value
    if given is not None:
        folders = resolver.find(
            given, lambda one: isinstance(one.node, ast.Call) and last_name(one.node.func) in _FOLDERS
        )
        if folders:
            return folders[0]
    return next((call for call in calls_behind(resolver, loader) if _is_decoding(call)), None)


def _is_decoding(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and _decodes(value.outline, value.node)


def _shown(decoding: Value, case: Case, *, in_worker: bool) -> Confirmation:
    file, call = decoding.outline, decoding.node
    assert isinstance(call, ast.Call)
    place = file.location(file.statement(call), case.location)
    name = last_name(call.func)
    if name == "decode_jpeg" and not in_worker and not case.device.is_cpu:
        patch = Patch(file)
        column = file.position(file.span(call)[0])[1] - 1
        patch.replace(call, edit_call(file.segment(call), {"device": '"cuda"'}, column=column))
        return Confirmation(place, (Fix(_SLUG, "Decode on the device", Safety.UNSAFE, patch.edits()),))
    return Confirmation(
        place, message=f"{name} decodes on the host; which decoder can take its place depends on the files"
    )


def _switched_off(view: Scene) -> Confirmation | None:
    """A faster reader that the source knows of and does not use."""
    workspace = view.resolver.workspace
    for path in workspace.paths():
        text = workspace.text(path)
        file = outline(workspace.file(path)) if text is not None and _SWITCH_IN_TEXT.search(text) else None
        for switch in _switches(file) if file is not None else ():
            assert file is not None
            patch = Patch(file)
            patch.replace(switch, "True")
            place = file.location(file.statement(switch), view.here.place)
            fix = Fix(_SLUG, "Use the faster reader", Safety.UNSAFE, patch.edits())
            return Confirmation(place, (fix,), (), "films or images are read by the slower reader")
    return None


def _switches(file: Outline) -> Iterator[ast.expr]:
    """The literals `False` by which a file turns a faster reader down."""
    for node in file.nodes:
        if isinstance(node, ast.keyword) and node.arg and _SWITCH.match(node.arg) and _is_false(node.value):
            yield node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and _SWITCH.match(str(key.value)) and _is_false(value):
                    yield value


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


FIXER = Fixer(
    _SLUG, _confirm, searcher(_confirm, ("imread", "Image.open", "VideoCapture", "DataLoader")), required=True
)
