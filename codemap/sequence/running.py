"""What calls show as: functions and modules of the workspace by what is in them, those of libraries by name."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..building.calls import is_generator
from ..building.classes import find, is_module_class
from ..building.heap import Raised
from ..building.signatures import Arguments, bind, signature_of
from ..building.values import (
    BoundMethod,
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    Names,
    NativeMethod,
    ObjectValue,
    PartialValue,
    Unknown,
    Value,
    join,
)
from .layers import walk_layer, walk_module
from .library import note_named, walk_library, walk_method, walk_step
from .quiet import NO_OPERATORS, NUMBERS
from .walker import NUMBER, Generated, Number, Walker

_MODULE_METHODS = frozenset(("forward", "__call__"))
_LIBRARY_OBJECTS = ("torch.optim.", "torch.utils.data.", "torch.cuda.amp.GradScaler", "torch.amp.GradScaler")


def walk_call(walker: Walker, callee: Value, given: Arguments, frame: Frame) -> Value:
    """What a call gives, the operators that it runs noted."""
    match callee:
        case LibraryValue() if callee.dotted.startswith(_LIBRARY_OBJECTS) and callee.name[:1].isupper():
            return _library_object(callee, given)
        case _ if walker.muted:
            return walker.plain_call(callee, given, frame)
        case ModuleValue():
            return walk_module(walker, callee, given, frame)
        case ClassValue() if is_module_class(walker, callee):
            return walker.called(callee, given, frame)
        case FunctionValue() | BoundMethod():
            return _walk_function(walker, callee, given, frame)
        case NativeMethod(of=ModuleValue() as module, name=name) if name in _MODULE_METHODS:
            return walk_layer(walker, module, given, frame)
        case NativeMethod():
            return walk_method(walker, callee, given, frame)
        case LibraryValue():
            return walk_library(walker, callee, given, frame)
        case Unknown():
            return _walk_unknown(walker, callee, given, frame)
        case ObjectValue(cls=None):
            walker.wildcard(0.9, 0.1)
            return Unknown("what an object of a library gives")
    return walker.plain_call(callee, given, frame)


def call_method(walker: Walker, of: ObjectValue, name: str, arguments: Sequence[Value], frame: Frame) -> Value:
    """Call a method that Python calls by itself (`__enter__`, `__getitem__`); nothing if there is none."""
    method = find(walker, of.cls, name) if of.cls is not None else None
    if not isinstance(method, FunctionValue):
        return of if name == "__enter__" else None
    return walker.call(BoundMethod(method, of), Arguments(list(arguments)), walker.node, frame)


def _library_object(callee: LibraryValue, given: Arguments) -> Value:
    names = ("dataset", "batch_size") if callee.name == "DataLoader" else ()
    attributes: dict[str, Value] = {**dict(zip(names, given.args, strict=False)), **given.kwargs}
    return ObjectValue(None, attributes, callee.dotted)


def _walk_function(walker: Walker, callee: FunctionValue | BoundMethod, given: Arguments, frame: Frame) -> Value:
    function = callee.function if isinstance(callee, BoundMethod) else callee
    if isinstance(callee, BoundMethod) and isinstance(callee.of, ModuleValue) and function.name == "forward":
        walker.forwards += 1
        try:
            return walker.plain_call(callee, given, frame)
        finally:
            walker.forwards -= 1
    node = function.node
    if not isinstance(node, ast.Lambda) and is_generator(node):
        args = [callee.of, *given.args] if isinstance(callee, BoundMethod) else given.args
        whole = Arguments(args, given.kwargs, given.is_open)
        names = Names(bind(signature_of(node.args), whole, function.defaults))
        inner = Frame(function.path, names, function.frame, function, function.owner)
        walker.execute(node.body, inner)
        return Generated("what a generator gives", (), (walker.yielded,))
    return walker.plain_call(callee, given, frame)


def _walk_unknown(walker: Walker, callee: Unknown, given: Arguments, frame: Frame) -> Value:
    """A call of something that is not known: of one of several things, or of anything with that name."""
    kinds = (FunctionValue, ModuleValue, BoundMethod, ClassValue, PartialValue, LibraryValue, NativeMethod, ObjectValue)
    choices = [one for one in callee.alternatives if isinstance(one, kinds)]
    if choices:
        start, ends, found = walker.at, [], []
        for one in choices:
            walker.at = list(start)
            try:
                found.append(walker.call(one, given, walker.node, frame))
            except Raised:
                continue
            ends += walker.at
        walker.join_nodes(ends)
        return join(found) if found else Unknown("one of several is called")
    node = walker.node
    if not isinstance(node, ast.Call):
        walker.wildcard(0.9, 0.1)
        return Unknown("what a call gives")
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name in NO_OPERATORS:
            return NUMBER if name in NUMBERS else Unknown("what a method gives")
        if isinstance(callee, Number):
            return NUMBER
        if name == "step":
            walk_step(walker, given, frame, 0.1)
            return NUMBER
        note_named(walker, name, [Unknown("the object"), *given.args], given, is_sure=False)
        return NUMBER if name in NUMBERS else Unknown("what a method gives")
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    walker.wildcard(0.7, 0.2, [name] if name else ())
    return Unknown("what a call gives")
