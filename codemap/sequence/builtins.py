"""Python's own functions on tensors."""

from __future__ import annotations

from ..building.expressions import items_of
from ..building.signatures import Arguments
from ..building.values import MORE, Frame, LibraryValue, ObjectValue, TensorValue, Unknown, Value, join
from .events import LOADER
from .layers import note_shown
from .loops import LOADER_CLASS
from .shows import shown_by_function
from .walker import NUMBER, SURE, UNSURE, Generated, Number, Walker, holds_objects, may_be_tensor

_PLAIN = frozenset(
    [
        "len",
        "isinstance",
        "range",
        "getattr",
        "hasattr",
        "setattr",
        "super",
        "type",
        "print",
        "str",
        "repr",
        "id",
        "issubclass",
        "callable",
    ]
)

_GO_THROUGH = frozenset(("enumerate", "zip", "iter", "list", "tuple", "reversed"))


def walk_builtin(walker: Walker, callee: LibraryValue, given: Arguments, frame: Frame) -> Value:
    """What a function of Python's own gives, with the operators that it runs on tensors."""

    name = callee.name
    first = given.args[0] if given.args else None
    is_sure = isinstance(first, TensorValue)
    if name == "map" and len(given.args) >= 2:
        return _mapped(walker, given, frame)
    if name in ("getattr", "setattr", "super"):
        return walker.plain_call(callee, given, frame)
    if name in _GO_THROUGH and (passed := passed_on(name, given)) is not None:
        return passed
    value = walker.called(callee, given, frame)
    if name in ("print", "str", "repr"):
        if any(may_be_tensor(one) for one in given.args):
            note_shown(walker, shown_by_function("print"), 0.0, None)
        return NUMBER if isinstance(value, Unknown) else value
    if name == "len":
        return NUMBER if isinstance(value, Unknown) else value
    if name in _PLAIN:
        return value
    if name in ("int", "float", "bool") and may_be_tensor(first):
        walker.note(["is_nonzero", "item"] if name == "bool" else ["item"], SURE if is_sure else UNSURE)
        return NUMBER
    if name in ("abs", "round", "pow") and may_be_tensor(first):
        walker.note([name], SURE if is_sure else UNSURE)
        return first
    if name in ("sum", "max", "min", "sorted", "any", "all") and any(
        may_be_tensor(one) or _holds(one) for one in given.args
    ):
        names = {"sum": ["add"], "max": ["gt", "is_nonzero"], "min": ["lt", "is_nonzero"]}.get(name, ["is_nonzero"])
        walker.note(names, 0.0, 0.02)
        return TensorValue(None, "") if is_sure or holds_objects(first) else Unknown(f"what {name}() gives")
    if name in ("list", "tuple", "zip", "enumerate", "set", "reversed") and any(
        may_be_tensor(one) for one in given.args
    ):
        walker.note(["unbind"], UNSURE / 2)
    if name == "next":
        walker.note([LOADER], 0.0)
        if isinstance(first, ObjectValue) and first.dotted == LOADER_CLASS:
            walker.wildcard(0.35, 0.0)
        return Unknown("the next item")
    if name == "iter" and isinstance(first, (ObjectValue, Unknown)):
        return first
    numbers = all(isinstance(one, (Number, int, float, str)) for one in given.args)
    return NUMBER if isinstance(value, Unknown) and numbers and given.args else value


def passed_on(name: str, given: Arguments) -> Value:
    """What goes through the items of a generator one by one gives; None if it is given none."""
    if not any(isinstance(one, Generated) for one in given.args):
        return None
    items: list[Value] = []
    for one in given.args:
        if isinstance(one, Generated):
            items.append(join(list(one.yields)))
        elif isinstance(one, (list, tuple)):
            items.append(join([item for item in one if item is not MORE][:6]))
        else:
            items.append(Unknown("an item of a sequence that is not known"))
    item = (NUMBER, items[0]) if name == "enumerate" else tuple(items) if name == "zip" else items[0]
    return Generated("what a generator gives", (), (item,))


def _holds(value: Value) -> bool:
    return isinstance(value, list) and any(isinstance(item, (TensorValue, Unknown)) for item in value[:8])


def _mapped(walker: Walker, given: Arguments, frame: Frame) -> Value:
    """`map(f, xs)`, as if it ran at once."""
    items = items_of(walker, given.args[1])
    known = [item for item in items or () if item is not MORE]
    if items is not None and MORE not in items and len(items) <= 16:
        return [walker.call(given.args[0], Arguments([item]), walker.node, frame) for item in items]
    if not walker.at:
        return Unknown("what map() gives")
    head = walker.program.add(None, walker.at)
    walker.at = [head]
    value = walker.call(given.args[0], Arguments([known[0] if known else Unknown("an item")]), walker.node, frame)
    walker.program.link(walker.at, head)
    walker.at = [head]
    return [value, MORE]
