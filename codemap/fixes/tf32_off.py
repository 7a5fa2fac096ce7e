"""fp32 products on a device that has TF32: allow it."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .imports import head_end, insert_at_head, top_level_imports
from .outline import Outline, last_name
from .scene import Scene, scene, searcher
from .versions import is_older

_SLUG = "tf32-off"
_ALLOWING = ("high", "medium")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu or (0, 0) < case.device.capability < (8, 0):
        return None
    files = list(dict.fromkeys(frame.outline for frame in view.frames))
    if any(_allows(file) for file in files):
        return None
    entry = files[-1]
    forbidding = next((node for file in files for node in _settings(file)), None)
    related = (Related("an fp32 product", case.location),)
    if forbidding is not None:
        file = next(file for file in files if forbidding in file.parents)
        place = file.location(file.statement(forbidding), case.location)
        return Confirmation(place, (_switch(file, forbidding),), related, "TF32 is switched off here")
    head = head_end(entry)
    place = entry.location(head, case.location) if head is not None else _first_place(view, entry)
    if is_older(case.device.torch_version, (1, 12)):
        return Confirmation(place, (), related, "set_float32_matmul_precision needs PyTorch 1.12")
    return Confirmation(place, (_allow(entry),), related)


def _first_place(view: Scene, entry: Outline):
    return entry.location(entry.tree.body[0], view.case.location) if entry.tree.body else view.case.location


def _allow(file: Outline) -> Fix:
    patch = Patch(file)
    torch = next((name for name, full in top_level_imports(file).items() if full == "torch"), None)
    setting = ["", f'{torch or "torch"}.set_float32_matmul_precision("high")']
    insert_at_head(patch, *(setting if torch else ["import torch", *setting]))
    return Fix(_SLUG, "Allow TF32 for fp32 products", Safety.UNSAFE, patch.edits())


def _switch(file: Outline, setting: ast.expr) -> Fix:
    patch = Patch(file)
    patch.replace(setting, '"high"' if isinstance(getattr(setting, "value", None), str) else "True")
    return Fix(_SLUG, "Allow TF32 for fp32 products", Safety.UNSAFE, patch.edits())


def _settings(file: Outline) -> list[ast.expr]:
    """The literals that set TF32 for products: the precision's name, or what `matmul.allow_tf32` is given."""
    if "tf32" not in file.text and "matmul_precision" not in file.text:
        return []
    found: list[ast.expr] = [
        call.args[0]
        for call in file.calls("set_float32_matmul_precision")
        if call.args and isinstance(call.args[0], ast.Constant)
    ]
    for node in file.statements:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if last_name(target) == "allow_tf32" and "cudnn" not in file.dotted(target):
                    found.append(node.value)
    return found


def _allows(file: Outline) -> bool:
    """Whether the file switches TF32 on, or sets it by a value that only the run knows."""
    if any(getattr(node, "value", None) in (*_ALLOWING, True) for node in _settings(file)):
        return True
    if any(
        call.args and not isinstance(call.args[0], ast.Constant) for call in file.calls("set_float32_matmul_precision")
    ):
        return True
    return "fp32_precision" in file.text and any(
        isinstance(node, ast.Assign)
        and any(last_name(target) == "fp32_precision" for target in node.targets)
        and getattr(node.value, "value", "") == "tf32"
        for node in file.statements
    )


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("model(", "net(", "__main__")))
