"""A float64 array that enters torch: float32 where it is made, or where it becomes a tensor."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .loaders import dataset_class, is_loader
from .numpy_names import CREATORS
from .numpy_types import Kind, NumberTypes
from .outline import Outline, find, last_name
from .resolve import Definition, Value
from .scene import Scene, scene, searcher

_SLUG = "float64-leak"
_ENTRANCES = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
_DOUBLE_NAME = re.compile(r"double|float64|fp64|f64|precise", re.IGNORECASE)
_MEANT = re.compile(
    r"precis|accura|exact|cancel|stab|overflow|on purpose|intention|(double|64)\w*: "
    r"|(need|keep|must|require|want)\w* .*(double|64|digits)|(double|64|digits).* (need|keep|must|require|want)",
    re.IGNORECASE,
)
"""Comments that give a reason for doubles, not those that only name them."""
_TORCH_DOUBLES = ("torch.float64", "torch.double")
_EXACT = ("matmul", "mm", "bmm", "dot", "einsum", "linear", "addmm", "lstsq", "solve", "copy_", "set_")
"""Operators that want all operands of one type, or take over the tensor's."""
_MOST_FOLLOWED = 40
_TYPED = CREATORS | {"array", "asarray", "full", "arange"}
"""Functions of NumPy that take a `dtype`."""
_FIX = "Make it float32 where it becomes a tensor"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or any(_asks_for_double(view.here.outline, one) for one in view.here.statements):
        return None
    types = NumberTypes(view.resolver)
    unsure: list[Value] = []
    for entrance in _entrances(view):
        made = types.of(_content(entrance))
        if made.kind is Kind.DOUBLE and not _is_meant(entrance, *made.causes):
            return _confirmation(view, types, entrance, made.causes)
        if made.kind is Kind.UNKNOWN and _may_be_array(entrance) and not _is_meant(entrance):
            unsure.append(entrance)
    places = {entrance.node for entrance in unsure}
    if len(places) != 1 or _cast_at_once(unsure[0]):
        return None
    place = unsure[0].outline.location(unsure[0].outline.statement(unsure[0].node), case.location)
    return Confirmation(place, (_narrowed(unsure[0], Safety.UNSAFE),))


def _may_be_array(entrance: Value) -> bool:
    """Whether what enters torch can be an array of NumPy: lists and numbers of Python become float32."""
    file, node = entrance.outline, entrance.node
    if not isinstance(node, ast.Call):
        return False
    if file.dotted(node.func) == "torch.from_numpy":
        return True
    has_numpy = any(name.partition(".")[0] == "numpy" for name in file.aliases.values())
    return has_numpy and not any(file.dotted(call.func).startswith("torch.") for call in find(node.args[0], ast.Call))


def _asks_for_double(file: Outline, statement: ast.stmt) -> bool:
    """Whether a statement itself turns tensors into doubles."""
    return any(last_name(call.func) == "double" for call in find(statement, ast.Call)) or any(
        file.dotted(node) in _TORCH_DOUBLES for node in find(statement, ast.Attribute)
    )


def _entrances(view: Scene) -> list[Value]:
    """Where arrays become tensors whose values reach the place, nearest first: calls of torch, and the arrays that a
    dataset hands to its loader."""
    named = [value for value in view.here.values() if value.outline.dotted(value.node) in _ENTRANCES]
    if named and not view.case.callers:
        return [value for value in view.here.values() if _is_entrance(value)]  # a search asks at each of them
    found: dict[ast.AST, Value] = {}
    queue = [one for one in view.here.values() if isinstance(one.node, ast.Name | ast.Attribute | ast.Call)]
    seen: set[ast.AST] = set()
    for value in queue:  # grows: what is computed from tensors is followed into its operands
        for one in view.resolver.find(value, lambda one: _is_entrance(one) or is_loader(one) or _is_computed(one)):
            if one.node in seen:
                continue
            seen.add(one.node)
            if _is_computed(one):
                queue += _operands(one) if len(queue) < _MOST_FOLLOWED else []
            elif _is_entrance(one):
                found.setdefault(one.node, one)
            elif is_loader(one) and (dataset := dataset_class(view.resolver, one)) is not None:
                found.update({item.node: item for item in _items(view, dataset)})
    return list(found.values())


def _is_computed(value: Value) -> bool:
    """Whether an expression computes with tensors: arithmetic, a part, a method of a tensor or of torch."""
    node = value.node
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Subscript):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and last_name(node.func.value) not in ("self", "cls")
        and not _is_entrance(value)
        and not is_loader(value)
    )


def _operands(value: Value) -> list[Value]:
    node = value.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [Value(value.outline, one) for one in (node.func.value, *node.args)]
    return [Value(value.outline, one) for one in ast.iter_child_nodes(node) if _is_expression(one)]


def _is_expression(node: ast.AST) -> TypeGuard[ast.expr]:
    return isinstance(node, ast.expr)


def _is_entrance(value: Value) -> bool:
    node = value.node
    if not (isinstance(node, ast.Call) and node.args and value.outline.dotted(node.func) in _ENTRANCES):
        return False
    has_type = any(keyword.arg in ("dtype", None) for keyword in node.keywords)
    return not has_type and not (len(node.args) > 1 and last_name(node.func) == "as_tensor")


def _items(view: Scene, dataset: Definition) -> list[Value]:
    """What a dataset's `__getitem__` gives: the calls that make tensors in it, and the arrays that collating turns
    into tensors."""
    method = view.resolver.method(dataset, "__getitem__")
    if method is None:
        return []
    found: list[Value] = []
    for returned in find(method.node, ast.Return):
        parts = returned.value.elts if isinstance(returned.value, ast.Tuple) else [returned.value]
        for part in (Value(method.outline, part) for part in parts if part is not None):
            made = view.resolver.find(part, _is_entrance)
            found.extend(made or [part])
    return found


def _content(entrance: Value) -> Value:
    """The array that becomes a tensor."""
    node = entrance.node
    return Value(entrance.outline, node.args[0]) if _is_entrance(entrance) and isinstance(node, ast.Call) else entrance


def _is_meant(*values: Value) -> bool:
    """Whether a comment or the name of what is assigned says that the doubles are wanted."""
    for value in values:
        statement = value.outline.statement(value.node)
        lines = value.outline.file.lines[statement.lineno - 1 : statement.end_lineno]
        comments = [line.partition("#")[2] for line in lines]
        targets = [ast.unparse(target) for target in getattr(statement, "targets", [])]
        if any(map(_MEANT.search, comments)) or any(map(_DOUBLE_NAME.search, targets)):
            return True
    return False


def _confirmation(view: Scene, types: NumberTypes, entrance: Value, causes: tuple[Value, ...]) -> Confirmation | None:
    file = entrance.outline
    place = file.location(file.statement(entrance.node), view.case.location)
    at_birth = _narrow_births(entrance, causes)
    if at_birth is not None:
        return Confirmation(place, (at_birth,))
    if _cast_at_once(entrance):
        return None
    is_exact = _reaches_exact_operator(entrance)
    return Confirmation(place, (_narrowed(entrance, Safety.UNSAFE if is_exact else Safety.SAFE),))


def _cast_at_once(entrance: Value) -> bool:
    """Whether the tensor is cast before anything else: `torch.from_numpy(x).float()`."""
    method = entrance.outline.parents.get(entrance.node)
    if not isinstance(method, ast.Attribute):
        return False
    call = entrance.outline.parents.get(method)
    if method.attr in ("float", "half", "bfloat16", "int", "long", "bool"):
        return True
    return (
        method.attr in ("to", "type")
        and isinstance(call, ast.Call)
        and any(
            "dtype" in ast.unparse(arg) or entrance.outline.dotted(arg).startswith(("torch.float", "torch.b"))
            for arg in (*call.args, *(keyword.value for keyword in call.keywords))
        )
    )


def _narrow_births(entrance: Value, causes: tuple[Value, ...]) -> Fix | None:
    """float32 at the creators and generators that made the doubles, where they run each time: in the function that
    makes the tensor."""
    file = entrance.outline
    function = file.function(entrance.node)
    calls = [cause.node for cause in causes if isinstance(cause.node, ast.Call)]
    if isinstance(function, ast.Module) or not causes or len(calls) < len(causes):
        return None
    if any(cause.outline is not file or file.function(cause.node) is not function for cause in causes):
        return None
    patch = Patch(file)
    for call in dict.fromkeys(calls):
        if last_name(call.func) in _TYPED:
            column = file.position(file.span(call)[0])[1] - 1
            dtype = {"dtype": name_for(patch, "numpy.float32")}
            patch.replace(call, edit_call(file.segment(call), dtype, column=column))
        elif last_name(call.func) != "astype" and not any(one.arg == "dtype" for one in call.keywords):
            patch.insert(file.span(call)[1], f".astype({name_for(patch, 'numpy.float32')})")
        else:
            return None  # float64 was asked for by name
    return Fix(_SLUG, "Make the array float32", Safety.SAFE, patch.edits())


def _narrowed(entrance: Value, safety: Safety) -> Fix:
    """`.float()` behind what makes the tensor, `.astype(np.float32)` behind an array that collating makes one of."""
    file, patch = entrance.outline, Patch(entrance.outline)
    node = entrance.node
    end = file.span(node)[1]
    if _is_entrance(entrance):
        patch.insert(end, ".float()")
    else:
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            patch.insert(file.span(node)[0], "(")
            patch.insert(end, ")")
        patch.insert(end, f".astype({name_for(patch, 'numpy.float32')})")
    return Fix(_SLUG, _FIX, safety, patch.edits())


def _reaches_exact_operator(entrance: Value) -> bool:
    """Whether what the tensor is assigned to takes part in an operator that wants equal types: others may be double."""
    file = entrance.outline
    statement = file.statement(entrance.node)
    names = {last_name(target) for target in getattr(statement, "targets", [])}
    for node in file.nodes:
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call) and last_name(node.func) in _EXACT:
            operands = [*node.args, node.func]
        if any(last_name(name) in names for operand in operands for name in find(operand, ast.expr)):
            return True
    return False


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("from_numpy(", "torch.tensor(", "as_tensor(", "asarray(")),
    required=True,
)
