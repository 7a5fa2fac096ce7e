"""Calls that move a tensor to another device."""

from __future__ import annotations

import ast
import re

from .outline import Outline
from .scene import Frame

_DTYPE = re.compile(r"b?float(16|32|64)?|half|double|u?int(8|16|32|64)?|long|short|bool|complex(64|128)")


def moved_tensors(frame: Frame) -> list[ast.Call]:
    """The `.to(device)` and `.cuda()` calls of a frame's statements, in the order of the text."""
    return [call for call in frame.calls() if is_move(frame.outline, call)]


def is_move(file: Outline, call: ast.Call) -> bool:
    """Whether a call moves something to a device: not to the CPU, and more than a change of type or layout."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cuda":
        return True
    if call.func.attr != "to":
        return False
    target = device_argument(file, call)
    return target is not None and not (isinstance(target, ast.Constant) and str(target.value).startswith("cpu"))


def device_argument(file: Outline, call: ast.Call) -> ast.expr | None:
    """The device (or the tensor to be like) in a `.to(...)`; None if only a type or layout is given."""
    for keyword in call.keywords:
        if keyword.arg == "device":
            return keyword.value
    if call.args and not is_dtype(file, call.args[0]):
        return call.args[0]
    return None


def is_dtype(file: Outline, node: ast.expr) -> bool:
    """Whether an expression reads as a dtype: `torch.half`, `x.dtype`, `self.weight_dtype`."""
    name = file.dotted(node)
    last = node.attr if isinstance(node, ast.Attribute) else name
    return (name.startswith("torch.") and _DTYPE.fullmatch(last) is not None) or last.endswith("dtype")


def is_non_blocking(call: ast.Call) -> bool:
    """Whether a move says `non_blocking`, whatever its value."""
    if any(keyword.arg in ("non_blocking", None) for keyword in call.keywords):
        return True
    return any(isinstance(arg, ast.Constant) and isinstance(arg.value, bool) for arg in call.args)
