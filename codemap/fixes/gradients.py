"""Whether code runs with gradients on, and whether what it gives is ever differentiated."""

from __future__ import annotations

import ast
import re
from weakref import WeakKeyDictionary

from ..workspace import Workspace
from .bindings import FUNCTIONS, walk_scope
from .outline import Outline, find, last_name

_OFF = ("no_grad", "inference_mode")
_DIFFERENTIATES = re.compile(r"\.backward\(|autograd\.grad\(|\.fit\(|jacobian\(|hessian\(|\bgrad\(")
_RUNS = re.compile(r"^(if __name__\b|for |while |with |[\w.]+\()", re.MULTILINE)
_NEVER: WeakKeyDictionary[Workspace, bool] = WeakKeyDictionary()
"""The answer of `never_differentiates` for each workspace as long as it is open: all its cases ask for it."""
_WITHOUT_GRAPH = ("detach", "data", "shape", "size", "dim", "device", "dtype", "ndim", "item", "tolist")
_NUMBERS = (
    "item",
    "tolist",
    "numpy",
    "detach",
    "len",
    "float",
    "int",
    "round",
    "perf_counter",
    "time",
    "mean",
    "array",
)


def is_off(file: Outline, node: ast.AST) -> bool:
    """Whether a node is or lies under `with torch.no_grad():` (or the like), or in a function that is decorated so."""
    for above in (node, *file.ancestors(node)):
        if isinstance(above, ast.With | ast.AsyncWith):
            if any(_turns_off(item.context_expr) for item in above.items):
                return True
        elif isinstance(above, FUNCTIONS) and any(_turns_off(decorator) for decorator in above.decorator_list):
            return True
    return False


def _turns_off(node: ast.expr) -> bool:
    call = node.func if isinstance(node, ast.Call) else node
    if last_name(call) == "set_grad_enabled" and isinstance(node, ast.Call):
        return not any(isinstance(arg, ast.Constant) and arg.value for arg in node.args)
    return last_name(call) in _OFF


def never_differentiates(workspace: Workspace) -> bool:
    """Whether the workspace is a whole program, which runs something by itself, and asks for no gradients anywhere.

    Of a library nobody knows what its callers do with what it gives.
    """
    if workspace not in _NEVER:
        texts = [workspace.text(path) or "" for path in workspace.paths()]
        _NEVER[workspace] = any(map(_RUNS.search, texts)) and not any(map(_DIFFERENTIATES.search, texts))
    return _NEVER[workspace]


def is_only_detached(file: Outline, statement: ast.stmt) -> bool:
    """Whether what a plain assignment gives names to is only used without its graph, until the names are given anew."""
    if not isinstance(statement, ast.Assign):
        return False
    names = [name.id for target in statement.targets for name in find(target, ast.Name)]
    has_names_only = all(isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    return has_names_only and bool(names) and all(_is_detached(file, statement, name) for name in names)


def _is_detached(file: Outline, statement: ast.Assign, name: str) -> bool:
    block, function = file.block(statement), file.function(statement)
    own = block.index(statement)
    giving = [position for position, one in enumerate(block) if isinstance(one, ast.Assign) and _gives(one, name)]
    before = max((position for position in giving if position < own), default=None)
    behind = min((position for position in giving if position > own), default=None)
    for node in find(function, ast.Name):
        if node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        position = next((p for p, one in enumerate(block) if node in ast.walk(one)), None)
        is_earlier = position is not None and before is not None and before <= position <= own
        is_later = position is not None and behind is not None and position > behind
        if not is_earlier and not is_later and not _leaves_graph(file, node):
            return False
    return True


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(node.id == name for target in statement.targets for node in find(target, ast.Name))


def _leaves_graph(file: Outline, node: ast.Name) -> bool:
    above = file.parents[node]
    if isinstance(above, ast.Attribute) and above.attr in _WITHOUT_GRAPH:
        return True
    return is_off(file, node) or isinstance(above, ast.Delete)


def returns_numbers(file: Outline, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function gives back nothing that could hold a graph, as far as its text shows it."""
    for node in walk_scope(function):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Return) and node.value is not None and not _is_number(file, node.value, set()):
            return False
    return True


def _is_number(file: Outline, node: ast.expr, seen: set[str]) -> bool:
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
        case ast.Call(func=function):
            return last_name(function) in _NUMBERS
        case ast.BinOp(left=left, right=right):
            return _is_number(file, left, seen) and _is_number(file, right, seen)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_is_number(file, part, seen) for part in parts)
        case ast.Dict(values=values):
            return all(_is_number(file, value, seen) for value in values)
        case ast.Name(id=name) if name not in seen:
            bound = file.bindings(file.function(node), name)
            values = [one.value for one in bound]
            return bool(values) and all(
                value is not None and not one.is_element and _is_number(file, value, seen | {name})
                for one, value in zip(bound, values, strict=True)
            )
        case ast.Name():
            return True
        case _:
            return False
