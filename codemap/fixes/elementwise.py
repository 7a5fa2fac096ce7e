"""Proofs that two tensors have the same shape, and that an index is a mask: from elementwise operations alone."""

from __future__ import annotations

import ast

from .outline import Outline, last_name

_TESTS = ("isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "eq", "ne", "gt", "ge", "lt", "le")
_MATHS = (
    "abs",
    "clamp",
    "exp",
    "log",
    "neg",
    "relu",
    "round",
    "sigmoid",
    "sqrt",
    "square",
    "tanh",
    "pow",
    "mul",
    "add",
)
_COPIES = ("clone", "contiguous", "detach", "bool", "double", "float", "half", "int", "long", "sub", "div")
_LIKE = ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like")
_KEEPING = frozenset([*_TESTS, *_MATHS, *_COPIES, *_LIKE])
"""Methods and functions whose result has the shape of their first operand, given numbers for the others."""
_MAX_DEPTH = 12


def is_mask(file: Outline, node: ast.expr, depth: int = 0) -> bool:
    """Whether an index is a boolean tensor: a comparison or test, or a name that was given one."""
    if depth > _MAX_DEPTH:
        return False
    match node:
        case ast.Compare(ops=ops):
            return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops)
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return is_mask(file, inner, depth + 1) or "mask" in last_name(inner)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), left=left, right=right):
            return is_mask(file, left, depth + 1) or is_mask(file, right, depth + 1)
        case ast.Call(func=func):
            return last_name(func) in (*_TESTS, "bool")
        case ast.Name():
            values = [binding.value for binding in file.lookup(node) if binding.value is not None]
            known = [is_mask(file, value, depth + 1) for value in values if value is not node]
            return any(known) if known else _is_named_mask(node.id)
        case ast.Attribute(attr=attr):
            return _is_named_mask(attr)
        case _:
            return False


def _is_named_mask(name: str) -> bool:
    return any(word in name.lower() for word in ("mask", "valid", "keep", "is_"))


def shape_root(file: Outline, node: ast.expr, depth: int = 0) -> str | None:
    """The name (and the line that bound it) whose shape an expression certainly has; None if that is not certain.

    Two expressions with the same root have the same shape. Numbers have none.
    """
    if depth > _MAX_DEPTH:
        return None
    match node:
        case ast.Name():
            return _root_of_name(file, node, depth)
        case ast.Compare(left=left, comparators=[right]) | ast.BinOp(left=left, right=right):
            return _joined(file, left, right, depth)
        case ast.UnaryOp(operand=inner):
            return shape_root(file, inner, depth + 1)
        case ast.Call():
            return _root_of_call(file, node, depth)
        case _:
            return None


def _joined(file: Outline, left: ast.expr, right: ast.expr, depth: int) -> str | None:
    """The common root of two operands; a number takes the other's shape."""
    if _is_number(right):
        return shape_root(file, left, depth + 1)
    if _is_number(left):
        return shape_root(file, right, depth + 1)
    one, other = (shape_root(file, side, depth + 1) for side in (left, right))
    return one if one == other else None


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _root_of_name(file: Outline, name: ast.Name, depth: int) -> str | None:
    bindings = [
        one
        for one in file.lookup(name)
        if getattr(one.node, "lineno", 0) < name.lineno or isinstance(one.node, ast.arg)
    ]
    changed = [one for one in bindings if isinstance(one.node, ast.stmt)]
    if not changed:
        return f"{name.id}@parameter" if bindings else None
    last = changed[-1]
    # Only a plain assignment in the same block is certain to be the one that counts.
    reader = file.statement(name)
    if last.node not in file.block(reader) and last.node not in _enclosing_blocks(file, reader):
        return None
    is_plain = isinstance(last.node, ast.Assign) and last.index is None and last.value is not None
    deeper = shape_root(file, last.value, depth + 1) if is_plain and last.value is not None else None
    if deeper is not None:
        return deeper
    return f"{name.id}@{getattr(last.node, 'lineno', 0)}"


def _enclosing_blocks(file: Outline, statement: ast.stmt) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for above in file.ancestors(statement):
        if isinstance(above, ast.stmt):
            found.extend(file.block(above))
    return found


def _root_of_call(file: Outline, call: ast.Call, depth: int) -> str | None:
    name, dotted = last_name(call.func), file.dotted(call.func)
    if dotted.startswith("torch.nn.functional.") and any(
        keyword.arg == "reduction" and getattr(keyword.value, "value", "") == "none" for keyword in call.keywords
    ):
        # Without reduction a loss has its target's shape.
        return shape_root(file, call.args[1], depth + 1) if len(call.args) > 1 else None
    if name not in _KEEPING:
        return None
    is_function = dotted.startswith("torch.")
    operand = call.args[0] if is_function and call.args else getattr(call.func, "value", None)
    others = call.args[1:] if is_function else call.args
    if not isinstance(operand, ast.expr) or not all(_is_number(other) for other in others):
        return None
    return shape_root(file, operand, depth + 1)
