"""Confusion matrices: class by class comparisons, and scikit-learn's, as one `bincount`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .rounds import free_name

_FLATTENED = ("ravel", "flatten", "cpu", "numpy", "detach", "contiguous")
"""Methods between a tensor and the flat array that a library is given."""


@dataclass(frozen=True, slots=True)
class ClassLoops:
    """`for i in range(n): for j in range(n): matrix[i, j] += sum((true == i) & (pred == j))`."""

    outline: Outline
    outer: ast.For
    matrix: ast.expr
    classes: ast.expr
    rows: ast.expr
    """What is compared with the row's class."""
    columns: ast.expr
    is_numpy: bool
    """Whether `np.sum` adds up, so that both are arrays."""


def class_loops(file: Outline, function: ast.AST) -> Iterator[ClassLoops]:
    """The loops in a function that count each pair of classes by comparing all labels with both."""
    for outer in find(function, ast.For):
        inner = outer.body[0] if len(outer.body) == 1 else None
        if not isinstance(inner, ast.For) or len(inner.body) != 1:
            continue
        row, column = last_name(outer.target), last_name(inner.target)
        match inner.body[0]:
            case ast.AugAssign(target=ast.Subscript() as target, op=ast.Add(), value=value):
                pass
            case _:
                continue
        classes = _range_of(outer.iter)
        matrix = _matrix_of(target, row, column)
        mask, is_numpy = _summed(file, value)
        if classes is None or matrix is None or mask is None:
            continue
        if _range_of(inner.iter) is None or file.segment(inner.iter) != file.segment(outer.iter):
            continue
        sides = _compared(file, mask)
        if set(sides) == {row, column}:
            yield ClassLoops(file, outer, matrix, classes, sides[row], sides[column], is_numpy)


def counted(loops: ClassLoops, slug: str) -> Fix | None:
    """One `bincount` of both labels; labels beyond the classes count nowhere, as before."""
    file = loops.outline
    if not loops.is_numpy or not all(isinstance(one, ast.Name | ast.Attribute) for one in (loops.rows, loops.columns)):
        return None
    patch = Patch(file)
    numpy = name_for(patch, "numpy")
    rows, columns, count = (file.segment(one) for one in (loops.rows, loops.columns, loops.classes))
    count = count if isinstance(loops.classes, ast.Name | ast.Attribute | ast.Constant) else f"({count})"
    known, pairs = free_name(file, "known"), free_name(file, "pairs")
    in_range = [f"({one} >= 0) & ({one} < {count})" for one in (rows, columns)]
    labels = [f"{one}[{known}].astype({numpy}.int64)" for one in (rows, columns)]
    indent = file.indentation(loops.outer)
    lines = [
        f"{known} = {' & '.join(in_range)}",
        f"{pairs} = {labels[0]} * {count} + {labels[1]}",
        f"{file.segment(loops.matrix)} += "
        f"{numpy}.bincount({pairs}, minlength={count} * {count}).reshape({count}, {count})",
    ]
    patch.replace(loops.outer, f"\n{indent}".join(lines))
    is_proved = all(_is_whole(file, one) for one in (loops.rows, loops.columns))
    safety = Safety.SAFE if is_proved else Safety.UNSAFE
    return Fix(slug, "Count all pairs of classes with one bincount", safety, patch.edits())


def library_matrix(file: Outline, call: ast.Call, slug: str) -> Fix | None:
    """`confusion_matrix(true, pred, labels=[0, ..., n - 1])` of flattened tensors, counted where the tensors are."""
    if last_name(call.func) != "confusion_matrix" or len(call.args) != 2:
        return None
    labels = next((keyword.value for keyword in call.keywords if keyword.arg == "labels"), None)
    count = _class_count(labels)
    if count is None or len(call.keywords) != 1:
        return None
    true, pred = (_tensor(argument) for argument in call.args)
    if true is None or pred is None:
        return None
    patch = Patch(file)
    bincount = name_for(patch, "torch.bincount")
    root = _root(pred)
    if root is None:
        return None
    flat = f"{count} * {file.segment(true)}.to({root}.device).flatten() + {file.segment(pred)}.flatten()"
    text = f"{bincount}({flat}, minlength={count * count}).reshape({count}, {count}).cpu().numpy()"
    patch.replace(call, text)
    return Fix(slug, "Count on the device and copy only the matrix", Safety.UNSAFE, patch.edits())


def _range_of(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[count]):
            return count
        case _:
            return None


def _matrix_of(target: ast.Subscript, row: str, column: str) -> ast.expr | None:
    """The matrix of `m[i, j]` and `m[i][j]`."""
    match target:
        case ast.Subscript(value=matrix, slice=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)])):
            return matrix if (first, second) == (row, column) else None
        case ast.Subscript(value=ast.Subscript(value=matrix, slice=ast.Name(id=first)), slice=ast.Name(id=second)):
            return matrix if (first, second) == (row, column) else None
        case _:
            return None


def _summed(file: Outline, node: ast.expr) -> tuple[ast.expr | None, bool]:
    """What a sum adds up, and whether numpy does: `np.sum(m)`, `m.sum()`, `np.count_nonzero(m)`."""
    match node:
        case ast.Call(args=[mask]) if file.dotted(node.func) in ("numpy.sum", "numpy.count_nonzero"):
            return mask, True
        case ast.Call(func=ast.Attribute(value=mask, attr="sum"), args=[]):
            return mask, False
        case (
            ast.Call(func=ast.Name(id="int"), args=[inner])
            | ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[])
        ):
            return _summed(file, inner)
        case _:
            return None, False


def _compared(file: Outline, mask: ast.expr) -> dict[str, ast.expr]:
    """Name of a class -> labels compared with it, of `(a == i) & (b == j)`."""
    match mask:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            pass
        case ast.Call(args=[left, right]) if file.dotted(mask.func) == "numpy.logical_and":
            pass
        case _:
            return {}
    found = {}
    for side in (left, right):
        match side:
            case ast.Compare(left=labels, ops=[ast.Eq()], comparators=[ast.Name(id=name)]):
                found[name] = labels
            case _:
                return {}
    return found


def _is_whole(file: Outline, labels: ast.expr) -> bool:
    """Whether labels are known to be whole numbers: an argmax, a cast to an integer type."""
    if not isinstance(labels, ast.Name):
        return False
    values = [one.value for one in file.lookup(labels) if one.value is not None]
    calls = {last_name(call.func) for value in values for call in find(value, ast.Call)}
    return bool(values) and bool(calls & {"argmax", "long", "int"})


def _class_count(labels: ast.expr | None) -> int | None:
    """n of `[0, 1, ..., n - 1]`, `range(n)` and `list(range(n))`, written as numbers."""
    match labels:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            values = [part.value if isinstance(part, ast.Constant) else None for part in parts]
            return len(values) if values == list(range(len(values))) else None
        case ast.Call(func=ast.Name(id="list"), args=[inner]):
            return _class_count(inner)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))]):
            return count
        case _:
            return None


def _tensor(node: ast.expr) -> ast.expr | None:
    """The tensor that flattening and copying methods are called on; None where one has arguments."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FLATTENED:
        if node.args or node.keywords:
            return None
        node = node.func.value
    return node if isinstance(node, ast.Name | ast.Attribute | ast.Call) else None


def _root(node: ast.expr) -> str | None:
    """The name that a chain of methods begins with."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
