"""Attributes and items: reading them and setting them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .classes import ABSENT, bind_to, body, find, is_enumeration, members, mro, native
from .layer_parts import repeated
from .layers import CONTAINERS, SIZES, axes_of
from .signatures import Arguments
from .tensors import attribute as tensor_attribute
from .tensors import item as tensor_item
from .values import (
    MORE,
    BoundMethod,
    ClassValue,
    FileValue,
    Frame,
    FunctionValue,
    ImportValue,
    Kind,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    ObjectValue,
    PartialValue,
    SuperValue,
    TensorValue,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    from .machine import Machine

_NATIVE = (str, list, dict, set, frozenset, tuple, int, float, bytes)


def get_attribute(machine: Machine, held: Value, name: str, node: ast.AST, frame: Frame) -> Value:
    """`held.name`."""
    match held:
        case ModuleValue() | ObjectValue():
            return _of_instance(machine, held, name, node, frame)
        case ClassValue():
            return _of_class(machine, held, name, node, frame)
        case LibraryValue():
            return _of_library(machine, held, name, frame)
        case FileValue():
            return _of_file(machine, held, name)
        case SuperValue():
            return _of_super(machine, held, name, node, frame)
        case TensorValue():
            return tensor_attribute(held, name)
        case Unknown():
            return _of_unknown(machine, held, name, node, frame)
        case FunctionValue() | BoundMethod():
            return held if name == "__func__" else getattr(held, "name", "") if name == "__name__" else ABSENT
        case PartialValue():
            return {"func": held.callee, "args": held.args, "keywords": held.kwargs}.get(name, ABSENT)
        case _ if isinstance(held, _NATIVE):
            return NativeMethod(held, name)
        case _:
            return Unknown(f"{name} of a value that has none")


def _of_unknown(machine: Machine, held: Unknown, name: str, node: ast.AST, frame: Frame) -> Value:
    """An attribute that all alternatives have alike is known."""
    if not held.alternatives or not all(isinstance(one, (ModuleValue, ObjectValue)) for one in held.alternatives):
        return Unknown(held.why)
    found = [get_attribute(machine, one, name, node, frame) for one in held.alternatives]
    return (
        Unknown(held.why)
        if any(isinstance(one, (Unknown, NativeMethod, BoundMethod)) for one in found)
        else join(found)
    )


def _of_instance(machine: Machine, held: ModuleValue | ObjectValue, name: str, node: ast.AST, frame: Frame) -> Value:
    if name in held.attributes:
        return held.attributes[name]
    if name == "__class__" and held.cls is not None:
        return held.cls
    if name == "__dict__":
        return held.attributes
    if held.cls is not None:
        found = find(machine, held.cls, name)
        if isinstance(found, LibraryValue):
            return _from_layer(held, name) if isinstance(held, ModuleValue) else native(held, name, found)
        if found is not ABSENT:
            return bind_to(machine, found, held, None, node, frame)
        if isinstance(getter := find(machine, held.cls, "__getattr__"), FunctionValue):
            return machine.call(BoundMethod(getter, held), Arguments([name]), node, frame)
    if isinstance(held, ModuleValue):
        return _from_layer(held, name)
    return NativeMethod(held, name, held.dotted) if held.dotted else ABSENT


def _from_layer(module: ModuleValue, name: str) -> Value:
    """What a layer of a library keeps of its arguments, else one of its methods."""
    if name in module.layer_arguments:
        value = module.layer_arguments[name]
        axes = axes_of(module.dotted)
        is_convolution = module.dotted.startswith("torch.nn.Conv")
        if name == "normalized_shape":
            return repeated(value, 1)
        return repeated(value, axes) if is_convolution and name in SIZES and not isinstance(value, str) else value
    if name == "training":
        return Unknown("training or not")
    return NativeMethod(module, name, module.dotted)


def _of_class(machine: Machine, held: ClassValue, name: str, node: ast.AST, frame: Frame) -> Value:
    if name in ("__name__", "__qualname__"):
        return held.name
    found = find(machine, held, name)
    if name == "__members__":
        return members(machine, held)
    return bind_to(machine, found, held, held, node, frame)


def _of_library(machine: Machine, held: LibraryValue, name: str, frame: Frame) -> Value:
    dotted = f"{held.dotted}.{name}"
    if name in ("__name__", "__qualname__"):
        return held.name
    path = machine.imports.absolute(dotted, frame.path)
    if path:
        return FileValue(path, machine.file(path))
    return {"math.pi": 3.141592653589793, "math.inf": float("inf"), "typing.TYPE_CHECKING": False}.get(
        dotted, LibraryValue(dotted)
    )


def _of_file(machine: Machine, held: FileValue, name: str) -> Value:
    if name in held.frame.names:
        return machine.lookup(name, held.frame)
    if held.path.endswith("/__init__.py"):
        value = machine.imported(ImportValue("", 1, name), held.path)
        if isinstance(value, FileValue):
            return value
    if name == "__dict__":
        return held.frame.names
    return machine.lookup(name, held.frame) if held.frame.star_imports else ABSENT


def _of_super(machine: Machine, held: SuperValue, name: str, node: ast.AST, frame: Frame) -> Value:
    of = held.of
    if isinstance(of, ClassValue):
        return bind_to(machine, find(machine, of, name, held.owner), of, of, node, frame)
    if not isinstance(of, (ModuleValue, ObjectValue)) or of.cls is None:
        return ABSENT
    found = find(machine, of.cls, name, held.owner)
    if name == "__init__" and not isinstance(found, FunctionValue):
        line = mro(machine, of.cls)
        behind = line[line.index(held.owner) + 1 :] if held.owner in line else ()
        data = next((base for base in behind if isinstance(base, ClassValue) and base.is_data), None)
        if data is not None:
            return NativeMethod(of, name, owner=data)
    if isinstance(found, LibraryValue):
        return native(of, name, found)
    if found is ABSENT:
        return NativeMethod(of, name, "builtins.object")
    return bind_to(machine, found, of, None, node, frame)


def set_attribute(machine: Machine, held: Value, name: str, value: Value) -> None:
    """`held.name = value`."""
    if isinstance(held, ModuleValue):
        set_on_module(machine, held, name, value)
    elif isinstance(held, ObjectValue):
        machine.heap.write(held.attributes)
        held.attributes[name] = value
    elif isinstance(held, ClassValue):
        attributes = body(machine, held)
        machine.heap.write(attributes)
        attributes[name] = value
    elif isinstance(held, Unknown) and len(held.alternatives) == 1:
        set_attribute(machine, held.alternatives[0], name, value)


def set_on_module(machine: Machine, module: ModuleValue, name: str, value: Value) -> None:
    """Set an attribute of a module: a module that takes the place of something else comes last among its children."""
    machine.heap.write(module.attributes)
    held = module.attributes.get(name)
    if isinstance(value, ModuleValue) and name in module.attributes and not isinstance(held, ModuleValue):
        del module.attributes[name]
    if isinstance(held, TensorValue) and isinstance(value, TensorValue) and value.kind is Kind.PLAIN is not held.kind:
        value = TensorValue(value.shape, value.dtype, held.kind, held.is_trainable)
    module.attributes[name] = value


def delete_attribute(machine: Machine, held: Value, name: str) -> None:
    """`del held.name`."""
    if isinstance(held, (ModuleValue, ObjectValue)):
        machine.heap.write(held.attributes)
        held.attributes.pop(name, None)


def get_item(machine: Machine, held: Value, index: Value) -> Value:
    """`held[index]`."""
    if isinstance(held, TensorValue):
        return tensor_item(held, index)
    if isinstance(held, ModuleValue) and held.dotted in CONTAINERS:
        return _of_container(held, index)
    if isinstance(held, ClassValue):
        if isinstance(index, str) and is_enumeration(machine, held):
            return body(machine, held).get(index, ABSENT)
        return held  # a generic class with its parameters
    if isinstance(held, LibraryValue):
        return held if held.name[:1].isupper() else Unknown("an item of a library's value")
    if isinstance(held, ObjectValue):
        return _of_object(machine, held, index)
    if isinstance(index, Unknown):
        return _any_item(held)
    if not isinstance(held, (list, tuple, dict, str, range)):
        return Unknown("an item of a value that is not known")
    return _of_plain(held, index)


def _any_item(held: Value) -> Value:
    """An item of which it is not known which one."""
    items = list(held.values()) if isinstance(held, dict) else list(held) if isinstance(held, (list, tuple)) else []
    return join([*items[:4], Unknown("an item of which the index is not known")])


def _of_plain(held: list[Value] | tuple[Value, ...] | dict[Value, Value] | str | range, index: Value) -> Value:
    if isinstance(held, (list, tuple)) and held and held[-1] is MORE:
        is_from_start = isinstance(index, int) and 0 <= index < len(held) - 1
        if not is_from_start:
            return Unknown("an item of a list of unknown length")
    try:
        value = held[index]  # pyright: ignore[reportArgumentType, reportCallIssue]
    except (TypeError, LookupError, ValueError):
        return Unknown("no such item")
    return value


def _of_object(machine: Machine, held: ObjectValue, index: Value) -> Value:
    if held.cls is not None:
        getter = find(machine, held.cls, "__getitem__")
        if isinstance(getter, FunctionValue):
            return machine.call(BoundMethod(getter, held), Arguments([index]), getter.node, getter.frame)
    values = list(held.attributes.values())
    if type(index) is int:
        return values[index] if -len(values) <= index < len(values) else ABSENT
    return held.attributes.get(index, ABSENT) if isinstance(index, str) else ABSENT


def _of_container(held: ModuleValue, index: Value) -> Value:
    if held.dotted == "torch.nn.ModuleDict":
        return held.attributes.get(index, ABSENT) if isinstance(index, str) else _any_item(held.attributes)
    items = held.items()
    if isinstance(index, slice):
        if held.has_more:
            return Unknown("items of a list of unknown length")
        names = list({child.name: None for child in held.children()})
        try:
            kept = list(zip(names, items, strict=True))[index]
        except (TypeError, ValueError):
            return Unknown("a slice that is not known")
        is_named = held.dotted == "torch.nn.Sequential" and names != [str(at) for at in range(len(names))]
        attributes = {name if is_named else str(at): one for at, (name, one) in enumerate(kept)}
        return ModuleValue(held.dotted, path=held.path, node=held.node, attributes=attributes)
    return _any_item(items) if isinstance(index, Unknown) else _of_plain(items, index)


def set_item(machine: Machine, held: Value, index: Value, value: Value) -> None:
    """`held[index] = value`."""
    if isinstance(held, ModuleValue) and held.dotted in CONTAINERS:
        names = [child.name for child in held.children()]
        if held.dotted == "torch.nn.ModuleDict" and isinstance(index, str):
            set_on_module(machine, held, index, value)
        elif type(index) is int and -len(names) <= index < len(names):
            set_on_module(machine, held, names[index], value)
    elif isinstance(held, dict):
        machine.heap.write(held)
        try:
            held[MORE if isinstance(index, Unknown) else index] = value
        except TypeError:
            held[MORE] = MORE
    elif isinstance(held, list):
        machine.heap.write(held)
        try:
            held[index] = value  # pyright: ignore[reportArgumentType, reportCallIssue]
        except (TypeError, LookupError, ValueError):
            held[:] = [Unknown("an item that may have been set") for _ in held]
    elif isinstance(held, ObjectValue) and isinstance(index, str):
        set_attribute(machine, held, index, value)


def delete_item(machine: Machine, held: Value, index: Value) -> None:
    """`del held[index]`."""
    if isinstance(held, dict):
        machine.heap.write(held)
        if isinstance(index, Unknown):
            held[MORE] = MORE
        elif not isinstance(index, (list, dict, set)):
            held.pop(index, None)
    elif isinstance(held, list):
        machine.heap.write(held)
        try:
            del held[index]  # pyright: ignore[reportArgumentType, reportCallIssue]
        except (TypeError, LookupError, ValueError):
            held.append(MORE)
    elif isinstance(held, ModuleValue) and held.dotted in CONTAINERS:
        _delete_from_container(machine, held, index)


def _delete_from_container(machine: Machine, held: ModuleValue, index: Value) -> None:
    names = [child.name for child in held.children()]
    if isinstance(index, str):
        delete_attribute(machine, held, index)
        return
    try:
        gone = names[index]  # pyright: ignore[reportArgumentType, reportCallIssue]
    except (TypeError, LookupError, ValueError):
        held.has_more = True
        return
    for name in [gone] if isinstance(gone, str) else gone:
        delete_attribute(machine, held, name)
    if all(name.isdigit() for name in names):
        kept = list(held.attributes.values())
        held.attributes.clear()
        held.attributes.update({str(at): value for at, value in enumerate(kept)})
