"""Proofs that a tensor is new and that nothing else reads it: only then is it all one whether it is overwritten."""

from __future__ import annotations

import ast

from .bindings import walk_scope
from .outline import LOOPS, Outline, find, last_name
from .resolve import Resolver, Value

_LAYERS = ("Conv", "LazyConv", "Linear", "LazyLinear", "Bilinear", "BatchNorm", "LazyBatchNorm", "SyncBatchNorm")
_NORMS = ("LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm", "MaxPool", "AvgPool", "Embedding", "MultiheadAttention")
_FUNCTIONS = ("conv", "linear", "bilinear", "batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm")
_PRODUCTS = ("matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "add", "sub", "mul", "div", "cat", "stack")


def makes_new(name: str) -> bool:
    """Whether a `torch.nn` class, by its dotted name, is a layer whose result is always a new tensor."""
    return name.startswith("torch.nn.") and name.rpartition(".")[2].startswith((*_LAYERS, *_NORMS))


def is_fresh(resolver: Resolver, value: Value) -> bool:
    """Whether an expression gives a new tensor that nothing else holds: a product, a sum, a layer with weights."""
    node, file = value.node, value.outline
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.MatMult()):
            return True
        case ast.Call():
            dotted = file.dotted(node.func)
            if dotted.startswith("torch.nn.functional."):
                return last_name(node.func).startswith(_FUNCTIONS)
            if dotted.startswith("torch.") and dotted.count(".") == 1:
                return last_name(node.func) in _PRODUCTS or last_name(node.func).startswith("conv")
            return _is_layer(resolver, Value(file, node.func))
        case _:
            return False


def _is_layer(resolver: Resolver, called: Value) -> bool:
    """Whether what is called is certainly a layer that makes a new tensor."""

    def is_made(one: Value) -> bool:
        return isinstance(one.node, ast.Call)

    if not isinstance(called.node, ast.Attribute | ast.Name):
        return False
    made = resolver.find(called, is_made)
    if len(made) == 1 and isinstance(made[0].node, ast.Call) and last_name(made[0].node.func) == "Sequential":
        args = made[0].node.args
        return bool(args) and _is_new_layer(made[0].outline, args[-1])
    return bool(made) and all(_is_new_layer(one.outline, one.node) for one in made)


def _is_new_layer(file: Outline, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and makes_new(file.dotted(node.func))


def feeds_next(module: Value) -> bool:
    """Whether a module stands in a `Sequential`, or a list of layers, right behind a layer that makes a new tensor."""
    file, node = module.outline, module.node
    parent = file.parents[node]
    if isinstance(parent, ast.Call) and last_name(parent.func) == "Sequential":
        held = parent.args
    elif isinstance(parent, ast.List | ast.Tuple):
        held = parent.elts
    else:
        return False
    at = held.index(node) if node in held else 0
    return at > 0 and _is_new_layer(file, held[at - 1])


def is_unread(resolver: Resolver, value: Value, statement: ast.stmt) -> bool:
    """Whether nobody reads the tensor that `value`, an operand in `statement`, names once the statement has run.

    A new tensor of its own, or a name that was given one in the same block, not read in between, and which the
    statement binds anew or nothing reads further on.
    """
    if is_fresh(resolver, value):
        return True
    file, name = value.outline, value.node
    if not isinstance(name, ast.Name):
        return False
    block = file.block(statement)
    at = block.index(statement)
    for earlier in reversed(block[:at]):
        if not any(one.id == name.id for one in find(earlier, ast.Name)):
            continue
        is_plain = isinstance(earlier, ast.Assign) and len(earlier.targets) == 1 and _binds(earlier, name.id)
        return (
            is_plain
            and isinstance(earlier, ast.Assign)
            and is_fresh(resolver, Value(file, earlier.value))
            and (_binds(statement, name.id) or not _read_later(file, name, statement))
            and _reads(statement, name.id) == 1
        )
    return False


def _binds(statement: ast.stmt, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name


def _reads(statement: ast.stmt, name: str) -> int:
    return sum(one.id == name and isinstance(one.ctx, ast.Load) for one in find(statement, ast.Name))


def _read_later(file: Outline, name: ast.Name, statement: ast.stmt) -> bool:
    """Whether the function reads a name behind a statement, or anywhere where the statement is in a loop."""
    is_in_loop = any(isinstance(above, LOOPS) for above in file.ancestors(statement))
    end = statement.end_lineno or statement.lineno
    return any(
        isinstance(node, ast.Name)
        and node.id == name.id
        and isinstance(node.ctx, ast.Load)
        and node is not name
        and (is_in_loop or node.lineno > end)
        for node in walk_scope(file.function(statement))
    )
