"""What calls give: functions and classes of the workspace are followed, libraries' by what is known of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..expressions import last_name
from ..nodes import children
from .classes import (
    fields_of,
    find,
    is_data_class,
    is_enumeration,
    is_module_class,
    library_base,
    mro,
)
from .heap import OutOfBudget, Raised
from .layers import layer_name
from .library import call_library
from .module_building import construct_layer
from .module_methods import call_on_module
from .natives import call_on_object, call_on_plain
from .signatures import Arguments, Signature, bind, signature_of
from .tensor_methods import call_on_tensor
from .values import (
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
    TensorValue,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    from .machine import Machine

_MOST_DEPTH = 28
"""Calls inside one another that are followed: each takes some ten frames of Python's own stack."""


def call_value(machine: Machine, callee: Value, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """What a call gives; `node` and `frame` say where it stands."""
    match callee:
        case FunctionValue():
            return run_function(machine, callee, given)
        case BoundMethod(function=function, of=of):
            return run_function(machine, function, Arguments([of, *given.args], given.kwargs, given.is_open))
        case ClassValue():
            return instantiate(machine, callee, given, node, frame)
        case LibraryValue():
            return call_library(machine, callee.dotted, given, node, frame)
        case PartialValue():
            merged = Arguments([*callee.args, *given.args], {**callee.kwargs, **given.kwargs}, given.is_open)
            return machine.call(callee.callee, merged, node, frame)
        case NativeMethod():
            return _call_native(machine, callee, given, node, frame)
        case ModuleValue():
            return _call_module(machine, callee, given, node, frame)
        case ObjectValue() if callee.cls is not None:
            method = find(machine, callee.cls, "__call__")
            if isinstance(method, FunctionValue):
                return machine.call(BoundMethod(method, callee), given, node, frame)
        case Unknown(alternatives=alternatives) if alternatives and len(alternatives) <= 2:
            return _call_either(machine, alternatives, given, node, frame)
    return Unknown("the result of a call that is not known")


def _call_either(
    machine: Machine, alternatives: tuple[Value, ...], given: Arguments, node: ast.AST, frame: Frame
) -> Value:
    """What a call gives that may be of one of two things."""
    callable_ones = [
        one for one in alternatives if isinstance(one, (ClassValue, FunctionValue, LibraryValue, PartialValue))
    ]
    found: list[Value] = [Unknown("one of several is called")]
    for one in callable_ones:
        try:
            found.append(machine.call(one, given, node, frame))
        except Raised:
            continue
    return join(found)


def run_function(machine: Machine, function: FunctionValue, given: Arguments) -> Value:
    """What a function of the workspace returns."""
    machine.entered.add(function.node)
    node = function.node
    if machine.budget.depth >= _MOST_DEPTH:
        machine.cut("calls go too deep to be followed")
        return Unknown("calls too deep to follow")
    names = Names(bind(signature_of(node.args), given, function.defaults))
    frame = Frame(function.path, names, function.frame, function, function.owner)
    machine.budget.depth += 1
    try:
        if isinstance(node, ast.Lambda):
            return machine.evaluate(node.body, frame)
        if machine.is_generator(node):
            return Unknown("what a generator gives")
        machine.execute(node.body, frame)
    except RecursionError:
        machine.cut("it is nested too deep to be followed")
        return Unknown("nested too deep to follow")
    finally:
        machine.budget.depth -= 1
    return join([*frame.returned, frame.value]) if frame.returned else frame.value


def is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function yields."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        current = waiting.pop()
        if isinstance(current, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(children(current))
    return False


def instantiate(machine: Machine, cls: ClassValue, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """An instance of a class of the workspace."""
    machine.budget.step(5)
    if is_enumeration(machine, cls):
        return Unknown("a member of an enumeration")
    if is_module_class(machine, cls):
        return _module(machine, cls, given, node, frame)
    made = ObjectValue(cls, {})
    libraries = [base for base in mro(machine, cls) if isinstance(base, LibraryValue)]
    made.dotted = libraries[0].dotted if libraries else ""
    init = find(machine, cls, "__init__")
    if isinstance(init, FunctionValue):
        machine.call(BoundMethod(init, made), given, node, frame)
    elif is_data_class(machine, cls):
        _fill_fields(machine, made, cls, given)
        if isinstance(after := find(machine, cls, "__post_init__"), FunctionValue):
            machine.call(BoundMethod(after, made), Arguments(), node, frame)
    elif libraries:
        made.attributes.update(given.kwargs)  # `class Config(PretrainedConfig)`, `class Options(dict)`
    return made


def _fill_fields(machine: Machine, made: ObjectValue | ModuleValue, cls: ClassValue, given: Arguments) -> None:
    fields = fields_of(machine, cls)
    defaults = {name: _field_default(machine, default, frame) for name, default, frame in fields if default is not None}
    made.attributes.update(bind(Signature(tuple(name for name, _, _ in fields)), given, defaults))


def _field_default(machine: Machine, default: ast.expr, frame: Frame) -> Value:
    """A field's default; `field(default=...)` and `Field(...)` looked into."""
    if not isinstance(default, ast.Call):
        return machine.evaluate(default, frame)
    if last_name(default) not in ("field", "Field", "ib", "attrib"):
        return machine.evaluate(default, frame)
    for keyword in default.keywords:
        if keyword.arg == "default":
            return machine.evaluate(keyword.value, frame)
        if keyword.arg in ("default_factory", "factory"):
            return machine.call(machine.evaluate(keyword.value, frame), Arguments(), default, frame)
    return machine.evaluate(default.args[0], frame) if default.args else Unknown("a field without default")


def _module(machine: Machine, cls: ClassValue, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """A module of the workspace as its constructor leaves it."""
    made = ModuleValue(library_base(machine, cls), cls, frame.path, node)
    with _constructing(machine, made):
        init = find(machine, cls, "__init__")
        if isinstance(init, FunctionValue):
            bound = bind(
                signature_of(init.node.args), Arguments([made, *given.args], given.kwargs, given.is_open), init.defaults
            )
            made.arguments = dict(list(bound.items())[1:])
            try:
                machine.call(BoundMethod(init, made), given, node, frame)
            except Raised:
                made.problem = "its constructor raises"
                if machine.constructing[:-1]:
                    raise
        elif isinstance(init, LibraryValue) and (name := layer_name(init.dotted.removesuffix(".__init__"))):
            construct_layer(machine, made, name, given, node, frame)
            made.arguments = made.layer_arguments
        elif is_data_class(machine, cls):
            fields = ObjectValue(cls, {})
            _fill_fields(machine, fields, cls, given)
            made.attributes.update(fields.attributes)
            made.arguments = fields.attributes
    if not made.problem and (name := _unknown_part(machine, made)):
        made.problem = f"what {name} is cannot be told"
    return made


def _unknown_part(machine: Machine, made: ModuleValue) -> str:
    """An attribute that the class calls or goes through, and of which nothing is known; "" if there is none."""
    assert made.cls is not None
    unknown = {name for name, value in made.attributes.items() if isinstance(value, Unknown) and not value.alternatives}
    return next(iter(sorted(unknown & machine.parts_used(made.cls))), "") if unknown else ""


def parts_used(cls: ClassValue) -> frozenset[str]:
    """Attributes of `self` that the methods of a class call, index or go through."""
    found: set[str] = set()
    waiting: list[ast.AST] = [cls.node]
    while waiting:
        node = waiting.pop()
        used = node.func if isinstance(node, ast.Call) else node.iter if isinstance(node, ast.For) else None
        match used:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(name)
        waiting.extend(children(node))
    return frozenset(found)


@contextmanager
def _constructing(machine: Machine, made: ModuleValue) -> Iterator[None]:
    """Notes a module while its constructor runs."""
    machine.note_module(made)
    machine.constructing.append(made)
    try:
        yield
    except (OutOfBudget, RecursionError):
        machine.cut("its constructor takes too long to be followed to its end")
        raise
    finally:
        machine.constructing.pop()


def _call_native(machine: Machine, method: NativeMethod, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    if method.owner is not None and isinstance(method.of, (ModuleValue, ObjectValue)):
        _fill_fields(machine, method.of, method.owner, given)
        return None
    match method.of:
        case ModuleValue() as module:
            return call_on_module(machine, module, method, given, node, frame)
        case TensorValue() as tensor:
            return call_on_tensor(tensor, method.name, given)
        case ObjectValue() as held:
            return call_on_object(machine, held, method, given)
        case _:
            return call_on_plain(machine, method.of, method.name, given)


def _call_module(machine: Machine, module: ModuleValue, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """What a module gives for its inputs. While models are built only what it is given is noted."""
    if machine.on_call is not None:
        return machine.on_call(module, given, node, frame)
    if not module.inputs and any(isinstance(one, TensorValue) for one in given.args):
        module.inputs = tuple(given.args)
    return Unknown("what a module gives")
