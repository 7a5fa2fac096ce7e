"""Reads attention written out by hand: softmax of a product, times a third tensor, in one or several statements.

From the softmax outward to the product with `v` (through dropout and casts), and inward to the product of `q` and `k`
(through scales and masks), following names through the statements of one block.
"""

from __future__ import annotations

import ast

from .attention_parts import (
    SOFTMAX,
    Attention,
    Mask,
    MaskKind,
    Needed,
    Refusal,
    Scale,
    find_module,
    given,
    integer,
    is_dropout,
    swaps_last,
)
from .bindings import walk_scope
from .einsum import parse_equation
from .outline import Outline, find, last_name

_PRODUCTS = ("matmul", "bmm")
_CASTS = ("to", "type_as", "type", "float", "half", "bfloat16", "contiguous", "clone")


def read_attention(file: Outline, softmax: ast.Call) -> Attention:
    """Take apart the attention round a softmax. Raises `LookupError` if there is none, `Refusal` if it is one that
    must stay."""
    found = Attention(file, softmax)
    _outward(found, softmax)
    _inward(found, _softmax_input(file, softmax, last=2 if found.is_three_dimensional else 3))
    if found.q is None:
        raise LookupError("no product under the softmax")
    found.statements.sort(key=lambda statement: (statement.lineno, statement.col_offset))
    return found


def _softmax_input(file: Outline, softmax: ast.Call, last: int) -> ast.expr:
    """What the softmax is taken of, once its dimension is known to be the last, which is number `last`."""
    args, func = list(softmax.args), softmax.func
    is_method = isinstance(func, ast.Attribute) and file.dotted(func.value) not in ("torch", "torch.nn.functional")
    held = find_module(file, func, SOFTMAX)
    if held is not None:  # self.softmax = nn.Softmax(dim=-1)
        dimension = given(held, "dim", 0)
        value = args[0] if args else None
    elif is_method and isinstance(func, ast.Attribute):
        dimension, value = given(softmax, "dim", 0), func.value
    else:
        dimension, value = given(softmax, "dim", 1), args[0] if args else None
    if value is None:
        raise LookupError("softmax of nothing")
    if dimension is None or integer(dimension) not in (-1, last):
        raise LookupError("softmax not known to run over the last dimension")
    return value


# Outward: from the weights to the product with v.


def _outward(found: Attention, start: ast.expr) -> None:
    file, current = found.outline, start
    for _ in range(12):
        parent = file.parents[current]
        if isinstance(parent, ast.Attribute) and isinstance(call := file.parents[parent], ast.Call):
            if parent.attr in _CASTS and call.func is parent:
                current = call
                continue
            if parent.attr in _PRODUCTS and call.func is parent and len(call.args) == 1:
                return _finish(found, call, call.args[0])
            if parent.attr in ("transpose", "permute", "mT"):
                return _finish_transposed(found, call)
            raise LookupError(f"weights used by {parent.attr}")
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult) and parent.left is current:
            return _finish(found, parent, parent.right)
        if isinstance(parent, ast.Call) and current in parent.args:
            if last_name(parent.func) in _PRODUCTS and parent.args[0] is current and len(parent.args) == 2:
                return _finish(found, parent, parent.args[1])
            if last_name(parent.func) == "einsum":
                return _finish_einsum(found, parent, current)
            if found.dropout is None and parent.args[0] is current and is_dropout(file, parent):
                found.dropout = parent
                current = parent
                continue
            raise LookupError("weights passed on")
        current = _next_use(found, current)
    raise LookupError("no second product")


def _next_use(found: Attention, value: ast.expr) -> ast.expr:
    """The one place that reads the name which `value` was assigned to."""
    file = found.outline
    statement = file.statement(value)
    if isinstance(statement, ast.Return):
        raise Needed("the attention weights are returned")
    if not isinstance(statement, ast.Assign) or statement.value is not value or len(statement.targets) != 1:
        raise LookupError("weights not assigned to a name")
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        raise Refusal("the attention weights are stored")
    if statement not in found.statements:
        found.statements.append(statement)
    found.names.add(target.id)
    uses = _reads_after(file, statement, target.id)
    if len(uses) != 1:
        if uses:
            raise Needed("the attention weights are used elsewhere")
        raise Refusal("the attention weights are not used")
    use = uses[0]
    holder = file.statement(use)
    if file.block(holder) is not file.block(statement):
        guard = file.parents[holder]
        if isinstance(guard, ast.If) and guard in file.block(statement):
            raise Refusal("a step of the attention stands under a condition")
        raise LookupError("weights used in another block")
    return use


def _reads_after(file: Outline, statement: ast.stmt, name: str) -> list[ast.Name]:
    """Reads of `name` in its function that may see what `statement` assigned: up to the next plain assignment."""
    nodes = [node for node in walk_scope(file.function(statement)) if isinstance(node, ast.Name) and node.id == name]
    block = file.block(statement)
    later = block[block.index(statement) + 1 :]
    redefinition = next((one for one in later if _assigns(one, name)), None)
    end = redefinition.end_lineno if redefinition is not None else None
    inner = [node for node in find(file.function(statement), ast.Name) if node.id == name and node not in nodes]
    return [
        node
        for node in [*nodes, *inner]
        if isinstance(node.ctx, ast.Load)
        and (node.lineno, node.col_offset) >= (statement.end_lineno or 0, statement.end_col_offset or 0)
        and (end is None or node.lineno <= end)
    ]


def _assigns(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in statement.targets
    )


def _finish(found: Attention, product: ast.expr, v: ast.expr) -> None:
    found.product, found.v = product, v
    found.statements.append(found.outline.statement(product))


def _finish_transposed(found: Attention, transposed: ast.Call) -> None:
    """`v @ weights.transpose(-2, -1)`: the other way round."""
    file = found.outline
    parent = file.parents[transposed]
    if not swaps_last(transposed):
        raise LookupError("weights transposed otherwise")
    found.is_transposed = True
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult) and parent.right is transposed:
        return _finish(found, parent, parent.left)
    if isinstance(parent, ast.Call) and last_name(parent.func) in _PRODUCTS and parent.args[-1] is transposed:
        first = parent.args[0] if len(parent.args) == 2 else getattr(parent.func, "value", None)
        if isinstance(first, ast.expr):
            return _finish(found, parent, first)
    raise LookupError("no second product")


def _finish_einsum(found: Attention, call: ast.Call, weights: ast.expr) -> None:
    equation = parse_equation(call)
    if equation is None or len(call.args) != 3 or call.args[1] is not weights:
        raise LookupError("no second product")
    found.product_equation = equation
    _finish(found, call, call.args[2])


# Inward: from the logits to the product of q and k.


def _inward(found: Attention, node: ast.expr, optional: str = "") -> None:
    file = found.outline
    match node:
        case ast.Name():
            _through_name(found, node)
        case ast.BinOp(op=ast.MatMult()):
            found.q, found.k = node.left, node.right
            _note(found, node)
        case ast.BinOp(op=ast.Mult() | ast.Div() | ast.Add() | ast.Sub()):
            _through_operator(found, node)
        case ast.Call() if last_name(node.func) == "einsum":
            found.logits_equation = parse_equation(node)
            if found.logits_equation is None or len(node.args) != 3:
                raise LookupError("einsum that is not understood")
            found.q, found.k = node.args[1], node.args[2]
            _note(found, node)
        case ast.Call(func=ast.Attribute(attr="matmul" | "bmm")) if len(node.args) == 2:
            found.q, found.k = node.args
            _note(found, node)
        case ast.Call(func=ast.Attribute(value=value, attr="matmul" | "bmm")) if len(node.args) == 1:
            found.q, found.k = value, node.args[0]
            _note(found, node)
        case ast.Call(func=ast.Attribute(value=value, attr="masked_fill" | "masked_fill_")) if len(node.args) == 2:
            _add_fill(found, node.args[0], node.args[1], optional)
            _inward(found, value)
        case ast.Call(func=ast.Attribute(value=value, attr="mul" | "div" | "mul_" | "div_" as name)) if node.args:
            _add_scale(found, node.args[0], is_divisor=name.startswith("div"))
            _inward(found, value)
        case ast.Call(func=ast.Attribute(value=value, attr="add" | "add_")) if len(node.args) == 1:
            _add_mask(found, MaskKind.ADDED, node.args[0], optional)
            _inward(found, value)
        case ast.Call(args=[kept, value, fill]) if file.dotted(node.func) == "torch.where":
            _fill_kind(fill)
            _add_mask(found, MaskKind.KEPT, kept, optional)
            _inward(found, value)
        case ast.Call(func=ast.Attribute(value=value, attr="float" | "contiguous")):
            _inward(found, value)
        case _:
            raise LookupError("logits that are not understood")


def _note(found: Attention, node: ast.expr) -> None:
    statement = found.outline.statement(node)
    if statement not in found.statements:
        found.statements.append(statement)


def _through_operator(found: Attention, node: ast.BinOp) -> None:
    left, right = node.left, node.right
    if isinstance(node.op, ast.Div):
        _add_scale(found, right, is_divisor=True)
        return _inward(found, left)
    # The side that leads to a product is the logits; the other is the scale or the mask.
    logits, other = (left, right) if _leads_to_product(found.outline, left) else (right, left)
    if not _leads_to_product(found.outline, logits):
        raise LookupError("no product under the softmax")
    if isinstance(node.op, ast.Mult):
        _add_scale(found, other, is_divisor=False)
    elif isinstance(node.op, ast.Add):
        _add_mask(found, MaskKind.ADDED, other)
    else:
        raise Refusal("something is subtracted from the logits")
    _inward(found, logits)


def _add_scale(found: Attention, node: ast.expr, *, is_divisor: bool) -> None:
    found.scales.append(Scale(node, is_divisor))


def _add_mask(found: Attention, kind: MaskKind, node: ast.expr, optional: str = "") -> None:
    # Read from the softmax inward: a scale met before an added mask is applied after it, to both.
    if found.scales and kind is MaskKind.ADDED:
        raise Refusal("the added mask is scaled together with the logits")
    found.masks.append(Mask(kind, node, optional))


def _add_fill(found: Attention, mask: ast.expr, fill: ast.expr, optional: str) -> None:
    _add_mask(found, _fill_kind(fill), mask, optional)


def _fill_kind(fill: ast.expr) -> MaskKind:
    text = ast.unparse(fill).replace('"', "'")
    if "inf" in text.lower() and "finfo" not in text:
        if "-" not in text:
            raise LookupError("filled with plus infinity")
        return MaskKind.FILLED
    if "finfo" in text or (isinstance(fill, ast.UnaryOp) and isinstance(fill.op, ast.USub)):
        return MaskKind.FILLED_FINITE
    raise Refusal("the logits are filled with something else than minus infinity")


def _leads_to_product(file: Outline, node: ast.expr, depth: int = 0) -> bool:
    if depth > 8:
        return False
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return True
        case ast.BinOp():
            return _leads_to_product(file, node.left, depth + 1) or _leads_to_product(file, node.right, depth + 1)
        case ast.Call() if last_name(node.func) in (*_PRODUCTS, "einsum"):
            return True
        case ast.Call(func=ast.Attribute(value=value)):
            return _leads_to_product(file, value, depth + 1)
        case ast.Name():
            return any(_leads_to_product(file, value, depth + 1) for value in _earlier_values(file, node))
        case _:
            return False


def _definition(file: Outline, name: ast.Name) -> ast.stmt | None:
    """The nearest earlier statement of the same block that changes what a name holds."""
    statement = file.statement(name)
    block = file.block(statement)
    for earlier in reversed(block[: block.index(statement)]):
        if _changes(earlier, name.id):
            return earlier
    return None


def _earlier_values(file: Outline, name: ast.Name) -> list[ast.expr]:
    """What a name was last assigned before in its block, steps that only change it left out."""
    block = file.block(file.statement(name))
    for earlier in reversed(block[: block.index(file.statement(name))]):
        if isinstance(earlier, ast.Assign) and _assigns(earlier, name.id):
            return [earlier.value]
    return []


def _changes(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Expr):
        call = statement.value
        return (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr.endswith("_")
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == name
        )
    return any(node.id == name and isinstance(node.ctx, ast.Store) for node in find(statement, ast.Name)) or (
        isinstance(statement, ast.If) and any(_changes(inner, name) for inner in statement.body)
    )


def _through_name(found: Attention, name: ast.Name) -> None:
    """Go on with the statement that gave the name its value, and with the one before where that only changes it."""
    file = found.outline
    definition = _definition(file, name)
    if definition is None:
        raise LookupError(f"{name.id} comes from elsewhere")
    found.names.add(name.id)
    if definition not in found.statements:
        found.statements.append(definition)
    match definition:
        case ast.Assign(targets=[ast.Name()], value=value):
            _inward(found, value)
        case ast.AugAssign(op=ast.Mult() | ast.Div() as op, value=value):
            _add_scale(found, value, is_divisor=isinstance(op, ast.Div))
            _inward_from(found, definition, name)
        case ast.AugAssign(op=ast.Add(), value=value):
            _add_mask(found, MaskKind.ADDED, value)
            _inward_from(found, definition, name)
        case ast.Expr(value=ast.Call() as call):
            _inward(found, call)
        case ast.If(test=test, body=[inner], orelse=[]):
            _optional_mask(found, definition, test, inner, name)
        case _:
            raise Refusal("the logits are made in several ways")


def _inward_from(found: Attention, statement: ast.stmt, name: ast.Name) -> None:
    """Continue above `statement`, as if it read `name`."""
    file = found.outline
    block = file.block(statement)
    for earlier in reversed(block[: block.index(statement)]):
        if _changes(earlier, name.id):
            reader = ast.copy_location(ast.Name(name.id, ast.Load()), statement)
            file.parents[reader] = statement
            return _through_name(found, reader)
    raise LookupError(f"{name.id} comes from elsewhere")


def _optional_mask(found: Attention, guard: ast.If, test: ast.expr, inner: ast.stmt, name: ast.Name) -> None:
    """`if mask is not None: logits = logits + mask`: the fused call takes None as well."""
    if not (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.IsNot)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    ):
        raise Refusal("a step of the attention stands under a condition")
    optional = ast.unparse(test.left)
    match inner:
        case ast.AugAssign(op=ast.Add(), value=value):
            _add_mask(found, MaskKind.ADDED, value, optional)
        case ast.Assign(value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)) if left == name.id:
            _add_mask(found, MaskKind.ADDED, value, optional)
        case (
            ast.Assign(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=left), attr="masked_fill" | "masked_fill_"), args=[mask, fill]
                )
            )
            | ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=left), attr="masked_fill_"), args=[mask, fill])
            )
        ) if left == name.id:
            _add_fill(found, mask, fill, optional)
        case _:
            raise Refusal("a step of the attention stands under a condition")
    _inward_from(found, guard, name)
