"""Normalisations of images that numpy computes: an image and constants under `+ - * /`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .bindings import walk_scope
from .outline import Outline, Scope, find, last_name
from .resolve import Resolver, Value

_ARRAYS = frozenset({"numpy.array", "numpy.asarray"})
_FLOAT32 = frozenset({"numpy.float32", "torch.float32", "torch.float"})
_OF_TENSORS = frozenset({"byte", "float", "half", "cpu", "cuda", "to", "detach", "permute", "unsqueeze", "contiguous"})
"""Methods that tensors have and arrays lack."""


@dataclass(frozen=True, slots=True)
class Normalisation:
    """An expression of `+ - * /` over one image and constants."""

    value: Value
    image: ast.expr
    arrays: tuple[ast.expr, ...]
    """The constants that are float64 arrays."""
    is_double: bool
    """Whether the image is made float64 by it, or kept so."""


def normalisations(resolver: Resolver, file: Outline, function: Scope) -> list[Normalisation]:
    """Those in a function's own statements, in the order of the text."""
    found = []
    for statement in walk_scope(function):
        if isinstance(statement, ast.Assign | ast.Return | ast.AugAssign):
            for node in _outermost_operations(statement):
                if (one := normalisation_of(resolver, Value(file, node))) is not None:
                    found.append(one)
    return found


def _outermost_operations(node: ast.AST) -> Iterator[ast.BinOp]:
    if isinstance(node, ast.BinOp):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost_operations(child)


def normalisation_of(resolver: Resolver, value: Value) -> Normalisation | None:
    """An expression as a normalisation; None if it is something else."""
    leaves = list(_leaves(value.node))
    if len(leaves) < 2:
        return None
    constants = [leaf for leaf in leaves if _is_constant(resolver, Value(value.outline, leaf))]
    images = [leaf for leaf in leaves if leaf not in constants]
    if len(images) != 1 or not constants or not _may_be_image(value.outline, images[0]):
        return None
    if any(isinstance(leaf, ast.List) and len(leaf.elts) == 1 for leaf in leaves) or _is_tensor(value):
        return None  # `[0] * n` repeats a list
    arrays = tuple(leaf for leaf in constants if _is_double_array(resolver, Value(value.outline, leaf)))
    has_array = any(_is_listed(resolver, Value(value.outline, leaf)) for leaf in constants)
    scales = any(isinstance(leaf, ast.Constant) and leaf.value in (255, 255.0, 127.5) for leaf in constants)
    if not (has_array or scales):
        return None
    single = is_single(value.outline, images[0])
    return Normalisation(value, images[0], arrays, bool(arrays) or not single)


def _may_be_image(file: Outline, node: ast.expr) -> bool:
    """Whether an expression can be an array of an image: not a tensor of torch, nor one number of a list."""
    if not _is_read_back(node) and any(_is_torch(file, call) for call in find(node, ast.Call)):
        return False
    bound = file.lookup(node) if isinstance(node, ast.Name) else []
    if any(isinstance(one.node, ast.comprehension) for one in bound):
        return False
    made = [call for one in bound if one.value is not None for call in find(one.value, ast.Call)]
    return not any(file.dotted(call.func).startswith("torch.") for call in made)


def _is_read_back(node: ast.expr) -> bool:
    """Whether an expression is the array of a tensor: `x.cpu().numpy()`."""
    return isinstance(node, ast.Call) and last_name(node.func) == "numpy"


def _is_torch(file: Outline, call: ast.Call) -> bool:
    """Whether a call is torch's, or that of a method that only tensors have."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _OF_TENSORS
    return is_method or file.dotted(call.func).startswith("torch.")


def _is_tensor(value: Value) -> bool:
    """Whether a method of tensors is called on an expression's result."""
    method = value.outline.parents[value.node]
    return isinstance(method, ast.Attribute) and method.attr in _OF_TENSORS


def _is_listed(resolver: Resolver, value: Value) -> bool:
    """Whether a constant is an array or a list of numbers, one for each channel."""
    given = [value, *_given(resolver, value)] if isinstance(value.node, ast.Name | ast.Attribute) else [value]
    return any(_is_array_call(one) or isinstance(one.node, ast.List | ast.Tuple) for one in given)


def _leaves(node: ast.AST) -> Iterator[ast.expr]:
    """What `+ - * /` are applied to."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    elif isinstance(node, ast.expr):
        yield node


def _is_constant(resolver: Resolver, value: Value) -> bool:
    """Whether an expression is a number, or a list of numbers given in the source."""
    node = value.node
    if isinstance(node, ast.UnaryOp):
        return _is_constant(resolver, Value(value.outline, node.operand))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.List | ast.Tuple):
        return bool(node.elts) and all(_is_constant(resolver, Value(value.outline, part)) for part in node.elts)
    if _is_array_call(value):
        assert isinstance(node, ast.Call)
        return _is_constant(resolver, Value(value.outline, node.args[0]))
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    given = _given(resolver, value)
    return bool(given) and all(one.node is not node and _is_constant(resolver, one) for one in given)


def _given(resolver: Resolver, value: Value) -> list[Value]:
    """The displays and array calls that a name was given; anything else that it may hold."""
    return resolver.find(value, lambda one: not isinstance(one.node, ast.Name | ast.Attribute | ast.IfExp))


def _is_array_call(value: Value) -> bool:
    node = value.node
    return (
        isinstance(node, ast.Call)
        and bool(node.args)
        and value.outline.dotted(node.func) in _ARRAYS | {"numpy.float32", "numpy.float64"}
    )


def _is_double_array(resolver: Resolver, value: Value) -> bool:
    """Whether a constant is an array of float64, or a list that becomes one: it makes everything float64."""
    is_own = _is_array_call(value) or isinstance(value.node, ast.List | ast.Tuple)
    given = [value] if is_own else _given(resolver, value)
    arrays = [one for one in given if _is_array_call(one) or isinstance(one.node, ast.List | ast.Tuple)]
    return any(not is_float32(one.outline, one.node) for one in arrays)


def is_float32(file: Outline, node: ast.AST) -> bool:
    """Whether an expression's own text makes it float32."""
    return any(
        (isinstance(part, ast.Attribute) and file.dotted(part) in _FLOAT32)
        or (isinstance(part, ast.Constant) and part.value == "float32")
        for part in ast.walk(node)
    )


def is_single(file: Outline, image: ast.expr) -> bool:
    """Whether an image is float32 by its own text, or by that of the statement above that gave it its name."""
    if not isinstance(image, ast.Name):
        return is_float32(file, image)
    given = [one.value for one in file.bindings(file.function(image), image.id) if one.value is not None]
    above = [value for value in given if value.lineno < image.lineno]
    return bool(above) and is_float32(file, above[-1])
