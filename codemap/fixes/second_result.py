"""What becomes of the second of the two things that a call gives back."""

from __future__ import annotations

import ast

from .outline import Outline, find


def drops_second(file: Outline, call: ast.Call) -> bool:
    """Whether the second item of the call's result is read by nobody."""
    parent = file.parents[call]
    if isinstance(parent, ast.Subscript):
        return _is_first(parent)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    if isinstance(target, ast.Name):
        return _only_first_is_read(file, call, target)
    if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 2:
        second = target.elts[1]
        if isinstance(second, ast.Starred):
            second = second.value
        return isinstance(second, ast.Name) and not _reads(file, call, second.id)
    return False


def _only_first_is_read(file: Outline, call: ast.Call, target: ast.Name) -> bool:
    """`out = attn(x, x, x)` of which only `out[0]` is read, with no other value under that name."""
    reads = _reads(file, call, target.id)
    bound = file.bindings(file.function(call), target.id)
    parents = [file.parents[read] for read in reads]
    return bool(reads) and len(bound) == 1 and all(isinstance(one, ast.Subscript) and _is_first(one) for one in parents)


def _is_first(subscript: ast.Subscript) -> bool:
    return isinstance(subscript.slice, ast.Constant) and subscript.slice.value == 0


def _reads(file: Outline, call: ast.Call, name: str) -> list[ast.Name]:
    nodes = find(file.function(call), ast.Name)
    return [node for node in nodes if node.id == name and isinstance(node.ctx, ast.Load)]
