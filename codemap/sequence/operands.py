"""The operators of expressions, in evaluation order."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from .. import operators
from ..building.expressions import binary, compare, items_of, truth
from ..building.objects import get_item
from ..building.statements import assign
from ..building.values import MORE, Frame, LibraryValue, Names, TensorValue, Unknown, Value, join
from .literals import shape_hints
from .program import Inputs
from .walker import NUMBER, SURE, UNSURE, Generated, Number, Walker, holds_objects, may_be_tensor

MOST_UNROLLED = 64
"""Passes of a loop that are followed one by one at most."""


def _operators(keys: Mapping[str, float]) -> dict[str, float]:
    """Of event keys (`operators.py`), those of operators."""
    return {key[2:]: cost for key, cost in keys.items() if key.startswith("o:")}


ITERATE = _operators(operators.ITERATE)
_TRUTH = _operators(operators.TRUTH)
_FORMAT: tuple[str, ...] = ("detach", "item", "resolve_conj", "is_nonzero")
_STORED = _operators(operators.INDEX_STORED)
_RESULT = _operators(operators.INDEX_RESULT)
_ANY = _operators(operators.INDEX_ANY)
_PROPERTIES = {name: tuple(shown) for name, shown in operators.PROPERTIES.items() if name != "data"}


def operator_names(op: ast.operator, *, in_place: bool = False) -> dict[str, float]:
    """What `a op b` (or `a op= b`) shows as."""
    return _operators(operators.binary(op, in_place=in_place))


def walk_expression(walker: Walker, node: ast.expr, frame: Frame) -> Value:
    """The value of an expression, with the operators that computing it runs."""
    walk = _WALK.get(type(node))
    if walk is None:
        return walker.plain_evaluate(node, frame)
    walker.budget.step()
    return walk(walker, node, frame)


def walk_truth(walker: Walker, node: ast.expr, value: Value) -> None:
    """Asking whether a value is true."""
    if isinstance(node, (ast.BoolOp, ast.Constant)):
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return
    if isinstance(value, TensorValue):
        walker.note(_TRUTH, 0.5, node=node)
    elif may_be_tensor(value):
        walker.note(_TRUTH, 0.05, node=node)


def _binary(walker: Walker, node: ast.BinOp, frame: Frame) -> Value:
    left, right = walker.evaluate(node.left, frame), walker.evaluate(node.right, frame)
    if not may_be_tensor(left) and not may_be_tensor(right):
        value = binary(walker, node.op, left, right)
        return NUMBER if isinstance(value, Unknown) else value
    is_sure = isinstance(left, TensorValue) or isinstance(right, TensorValue)
    if isinstance(node.op, ast.Div) and not may_be_tensor(left):
        # A number divided by a tensor is its reciprocal times the number.
        walker.note(["reciprocal", "div"], SURE if is_sure else UNSURE, node=node)
        walker.note(["mul"], 0.1, node=node)
    elif isinstance(node.op, ast.Mod) and isinstance(left, str):
        walker.note(_FORMAT, 0.0, 0.05, node=node)
        return NUMBER
    else:
        hints = shape_hints(left, right)
        inputs = Inputs(hints=hints) if hints else None
        walker.note(operator_names(node.op), SURE if is_sure else UNSURE, inputs=inputs, node=node)
    value = binary(walker, node.op, left, right)
    return TensorValue(None, "") if is_sure and isinstance(value, Unknown) else value


def _unary(walker: Walker, node: ast.UnaryOp, frame: Frame) -> Value:
    value = walker.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        walk_truth(walker, node.operand, value)
        known = truth(value)
        return NUMBER if known is None else not known
    if may_be_tensor(value):
        names = _operators(operators.unary(node.op))
        walker.note(names, SURE if isinstance(value, TensorValue) else UNSURE, node=node)
        return value if isinstance(value, TensorValue) else Unknown("computed from a value that is not known")
    if isinstance(value, (int, float)):
        return -value if isinstance(node.op, ast.USub) else ~value if isinstance(value, int) else NUMBER
    return NUMBER


def _compare(walker: Walker, node: ast.Compare, frame: Frame) -> Value:
    left = walker.evaluate(node.left, frame)
    result: Value = True
    for op, other in zip(node.ops, node.comparators, strict=True):
        right = walker.evaluate(other, frame)
        if isinstance(op, (ast.Is, ast.IsNot)) or not (may_be_tensor(left) or may_be_tensor(right)):
            found = compare(op, left, right)
            if found is False:
                return False
            result = NUMBER if isinstance(found, Unknown) else result
        else:
            is_sure = isinstance(left, TensorValue) or isinstance(right, TensorValue)
            is_plain = isinstance(left, str) or isinstance(right, str) or isinstance(op, (ast.In, ast.NotIn))
            if not is_plain:
                walker.note(_operators(operators.compare(op)), SURE if is_sure else UNSURE / 2, node=node)
            result = TensorValue(None, "bool") if is_sure and not is_plain else Unknown("compared")
        left = right
    return result


def _both(walker: Walker, node: ast.BoolOp, frame: Frame) -> Value:
    """`and`, `or`: what follows an operand that decides is not run."""
    decides = isinstance(node.op, ast.Or)
    ends: list[int] = []
    found: list[Value] = []
    value: Value = None
    for at, operand in enumerate(node.values):
        value = walker.evaluate(operand, frame)
        known = truth(value)
        if at < len(node.values) - 1:
            walk_truth(walker, operand, value)
        if known is decides:
            break
        if known is None:
            found.append(value)
            ends += walker.at
    else:
        if found and not any(value is one for one in found):
            found.append(value)
    walker.join_nodes([*ends, *walker.at])
    return join([*found, value]) if found else value


def _choice(walker: Walker, node: ast.IfExp, frame: Frame) -> Value:
    value = walker.evaluate(node.test, frame)
    walk_truth(walker, node.test, value)
    known = truth(value)
    if known is not None:
        return walker.evaluate(node.body if known else node.orelse, frame)
    start = walker.at
    first = walker.evaluate(node.body, frame)
    end = walker.at
    walker.at = start
    second = walker.evaluate(node.orelse, frame)
    walker.join_nodes([*end, *walker.at])
    return join([first, second])


def _subscript(walker: Walker, node: ast.Subscript, frame: Frame) -> Value:
    held = walker.evaluate(node.value, frame)
    index = walker.evaluate(node.slice, frame)
    if isinstance(held, Number):
        return NUMBER
    if may_be_tensor(held) and not isinstance(index, str):
        walk_index(walker, node, held, index)
    item = get_item(walker, held, index)
    return TensorValue(None, "") if isinstance(held, TensorValue) and isinstance(item, Unknown) else item


def walk_index(walker: Walker, node: ast.Subscript, held: Value, index: Value, *, is_store: bool = False) -> None:
    """`x[i, a:b, None]` of a tensor: one operator for each index, and one at the end."""
    is_sure = isinstance(held, TensorValue)
    cost = 0.8 if is_sure else 0.06
    parts = index if isinstance(index, tuple) else (index,)
    written = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_gathered = False
    for at, part in enumerate(parts):
        is_slice = isinstance(part, slice) or (at < len(written) and isinstance(written[at], ast.Slice))
        if part is None:
            walker.note(["unsqueeze"], cost, node=node)
        elif part is Ellipsis or part == slice(None):
            continue
        elif is_slice:
            walker.note({"slice": 0.0, "item": 0.3}, cost, inputs=_slice_inputs(part), node=node)
        elif type(part) is int:
            walker.note(["select"], cost, inputs=Inputs(values=((2, part),)), node=node)
        else:
            is_gathered |= may_be_tensor(part) or isinstance(part, (list, tuple))
            walker.note({**_ANY, "select": 0.05}, 0.05, 0.1, node=node)
    if is_store:
        walker.note(_STORED, cost / 2, 0.1, node=node)
    elif is_gathered:
        walker.note(_RESULT, 0.3 if is_sure else 0.05, 0.2, node=node)


def _slice_inputs(part: Value) -> Inputs | None:
    if not isinstance(part, slice):
        return None
    bounds = ((2, part.start), (3, part.stop), (4, part.step))
    values = tuple((at, bound) for at, bound in bounds if type(bound) is int)
    return Inputs(values=values) if values else None


def _attribute(walker: Walker, node: ast.Attribute, frame: Frame) -> Value:
    held = walker.evaluate(node.value, frame)
    if isinstance(held, Number):
        return Unknown("an attribute of a value that is not known")
    if node.attr in _PROPERTIES and may_be_tensor(held):
        shown = _PROPERTIES[node.attr]
        walker.note(shown, 0.8 if isinstance(held, TensorValue) else 0.1, node=node)
    if node.attr in ("shape", "ndim", "dtype", "device", "requires_grad", "is_cuda") and may_be_tensor(held):
        value = walker.attribute(held, node, frame)
        return NUMBER if isinstance(value, Unknown) else _numbers(value)
    return walker.attribute(held, node, frame)


def _numbers(value: Value) -> Value:
    """A shape, its unknown sizes marked as numbers."""
    if isinstance(value, tuple):
        return tuple(NUMBER if isinstance(size, Unknown) else size for size in value)
    return value


def _formatted(walker: Walker, node: ast.FormattedValue, frame: Frame) -> Value:
    value = walker.evaluate(node.value, frame)
    if may_be_tensor(value):
        walker.note(_FORMAT, 0.0, 0.05, node=node)
        return NUMBER
    return value if isinstance(value, str) and node.format_spec is None else NUMBER


def _text(walker: Walker, node: ast.JoinedStr, frame: Frame) -> Value:
    parts = [walker.evaluate(part, frame) for part in node.values]
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    value = walker.evaluated(node, frame)
    return value if isinstance(value, str) else NUMBER


def _waited(walker: Walker, node: ast.Await | ast.YieldFrom | ast.Yield, frame: Frame) -> Value:
    value = walker.evaluate(node.value, frame) if node.value is not None else None
    if isinstance(node, ast.Yield):
        walker.here.yields.append(value)
        walker.here.returns += walker.at  # whoever asked for the item may never ask for another
    elif isinstance(node, ast.YieldFrom):
        items = items_of(walker, value)
        walker.here.yields += value.yields if isinstance(value, Generated) else items[:6] if items else ()
    return value if isinstance(node, ast.Await) else Unknown("what is sent to a generator")


def _comprehension(walker: Walker, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
    inner = Frame(frame.path, Names(), frame, frame.function, frame.owner)
    found: list[Value] = []
    is_whole = _passes(walker, node.generators, inner, lambda: found.append(walker.evaluate(node.elt, inner)))
    return found if is_whole else [join(found[:6]) if found else Unknown("an item"), MORE]


def _dict(walker: Walker, node: ast.DictComp, frame: Frame) -> Value:
    inner = Frame(frame.path, Names(), frame, frame.function, frame.owner)
    found: dict[Value, Value] = {}

    def add() -> None:
        key, value = walker.evaluate(node.key, inner), walker.evaluate(node.value, inner)
        found[key if isinstance(key, (str, int)) else MORE] = value

    is_whole = _passes(walker, node.generators, inner, add)
    return found if is_whole else {**found, MORE: MORE}


def _passes(walker: Walker, loops: Sequence[ast.comprehension], frame: Frame, run: Callable[[], None]) -> bool:
    """Nested loops of a comprehension; whether each pass was followed by itself."""
    loop, *rest = loops
    value = walker.evaluate(loop.iter, frame)
    if may_be_tensor(value):
        walker.note(ITERATE, UNSURE, node=loop.iter)
    items = items_of(walker, value)
    is_model = walker.forwards > 0 or any(holds_objects(item) for item in items or ())
    is_whole = items is not None and MORE not in items and (len(items) <= 4 or is_model) and len(items) <= MOST_UNROLLED

    def once(item: Value) -> bool:
        assign(walker, loop.target, item, frame)
        skipped: list[int] = []
        for test in loop.ifs:
            tested = walker.evaluate(test, frame)
            walk_truth(walker, test, tested)
            if truth(tested) is False:
                walker.join_nodes(skipped or walker.at)
                return True
            if truth(tested) is None:
                skipped += walker.at
        whole = _passes(walker, rest, frame, run) if rest else True
        if not rest:
            run()
        walker.join_nodes([*walker.at, *skipped])
        return whole and not skipped

    if is_whole and items is not None:
        followed = [once(item) for item in items]  # each of them, also behind one that is not
        return all(followed)
    if not walker.at:
        return False
    head = walker.program.add(None, walker.at)
    walker.at = [head]
    known = [item for item in items or () if item is not MORE]
    is_number = isinstance(value, (Number, range))
    if isinstance(value, Generated):
        known = list(value.yields)
    item = NUMBER if is_number else join(known[:6]) if known else Unknown("an item of a sequence that is not known")
    once(item)
    walker.program.link(walker.at, head)
    walker.at = [head]
    return False


def is_library(value: Value, *heads: str) -> bool:
    """Whether a value is of a library whose dotted name starts so."""
    return isinstance(value, LibraryValue) and value.dotted.startswith(heads)


_WALK: Mapping[type[ast.expr], Callable[..., Value]] = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _both,
    ast.IfExp: _choice,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    ast.JoinedStr: _text,
    ast.FormattedValue: _formatted,
    ast.Await: _waited,
    ast.Yield: _waited,
    ast.YieldFrom: _waited,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict,
}
