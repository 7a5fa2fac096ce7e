"""What methods of `nn.Module`, its containers and its layers do to a module and give."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .layer_parts import DTYPES, dtype_name
from .layers import layer_name
from .module_building import append_all, construct_layer, extend, update
from .objects import delete_attribute, set_on_module
from .signatures import Arguments
from .values import (
    MORE,
    Frame,
    Kind,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    TensorValue,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from .machine import Machine

_WORDS_OF_RETURN_ITSELF = """
to cuda cpu eval train float half bfloat16 double type requires_grad_ apply share_memory xpu compile to_empty
zero_grad
"""
_RETURN_ITSELF = frozenset(_WORDS_OF_RETURN_ITSELF.split())


_WORDS_OF_METHODS = """
add_module append apply bfloat16 buffers children compile cpu cuda double eval extend extra_repr float forward
get_buffer get_extra_state get_parameter get_submodule half insert items keys load_state_dict modules
named_buffers named_children named_modules named_parameters parameters pop register_buffer register_forward_hook
register_forward_pre_hook register_full_backward_hook register_module register_parameter requires_grad_
set_extra_state share_memory state_dict to to_empty train training type update values xpu zero_grad __call__
__init__ __setattr__ __class__ __dict__ __len__
"""
MODULE_METHODS = frozenset(_WORDS_OF_METHODS.split())
"""Names that a module has from `nn.Module` or from its containers."""


def _append(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    append_all(machine, module, [given.get(0, "module")])
    return module


def _insert(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    at, value = given.get(0, "index"), given.get(1, "module")
    items: list[Value] = [child.module for child in module.children()]
    if type(at) is not int:
        module.has_more = True
        return module
    items.insert(at, value)
    machine.heap.write(module.attributes)
    for name in [name for name in module.attributes if name.isdigit()]:
        del module.attributes[name]
    append_all(machine, module, items)
    return module


def call_on_module(
    machine: Machine, module: ModuleValue, method: NativeMethod, given: Arguments, node: ast.AST, frame: Frame
) -> Value:
    """What a method of `nn.Module` (or of the library's layer that a module derives from) does and gives."""
    name = method.name
    if name == "__init__":
        if layer := layer_name(method.dotted):
            construct_layer(machine, module, layer, given, node, frame)
        return None
    if name in ("forward", "__call__"):
        return _forward(machine, module, method, given, node, frame)
    if name in _RETURN_ITSELF:
        _cast(machine, module, name, given)
        return module
    run = _METHODS.get(name)
    return run(machine, module, given) if run is not None else Unknown(f"what {name}() of a module gives")


def _forward(
    machine: Machine, module: ModuleValue, method: NativeMethod, given: Arguments, node: ast.AST, frame: Frame
) -> Value:
    """A layer's own `forward`, as `super().forward(x)` of a class that derives from it asks for it."""
    if machine.on_call is None:
        return Unknown("what a module gives")
    plain = replace(module, cls=None, dotted=method.dotted) if layer_name(method.dotted) else module
    return machine.on_call(plain, given, node, frame)


def _cast(machine: Machine, module: ModuleValue, name: str, given: Arguments) -> None:
    """`model.half()`, `model.to(torch.bfloat16)`: floating-point tensors change their dtype."""
    named = [dtype_name(one) for one in (*given.args, given.kwargs.get("dtype")) if isinstance(one, LibraryValue)]
    dtype = DTYPES.get(name) or next((one for one in named if one.startswith(("float", "bfloat"))), "")
    if not dtype:
        return
    for current in module.walk():
        machine.budget.step()
        machine.heap.write(current.attributes)
        for key, value in current.attributes.items():
            if isinstance(value, TensorValue) and value.dtype.startswith(("float", "bfloat")):
                current.attributes[key] = replace(value, dtype=dtype)


def _add_module(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    name, value = given.get(0, "name"), given.get(1, "module")
    if isinstance(name, str):
        set_on_module(machine, module, name, value)
    else:
        module.has_more = True
    return None


def _register_buffer(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    name, value = given.get(0, "name"), given.get(1, "tensor")
    if isinstance(value, Unknown):
        value = TensorValue(None, "")
    if isinstance(name, str):
        held = replace(value, kind=Kind.BUFFER, sources=frozenset()) if isinstance(value, TensorValue) else value
        set_on_module(machine, module, name, held)
    return None


def _register_parameter(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    name, value = given.get(0, "name"), given.get(1, "param")
    if isinstance(name, str):
        set_on_module(machine, module, name, value)
    return None


def _children(_machine: Machine, module: ModuleValue, _given: Arguments) -> Value:
    return [*(child.module for child in module.children()), *([MORE] if module.has_more else [])]


def _named_children(_machine: Machine, module: ModuleValue, _given: Arguments) -> Value:
    found: list[Value] = [(child.name, child.module) for child in module.children()]
    return [*found, MORE] if module.has_more else found


def _keys(_machine: Machine, module: ModuleValue, _given: Arguments) -> Value:
    found: list[Value] = [child.name for child in module.children()]
    return [*found, MORE] if module.has_more else found


def _submodule(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    path = given.get(0, "target")
    current: Value = module
    for part in path.split(".") if isinstance(path, str) and path else ():
        current = (
            current.attributes.get(part, Unknown("no such module")) if isinstance(current, ModuleValue) else current
        )
    return current if isinstance(path, str) else Unknown("a module that is not known")


def _pop(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    at = given.get(0, "key", -1)
    names = [child.name for child in module.children()]
    if type(at) is int and -len(names) <= at < len(names):
        at = names[at]
    if not isinstance(at, str):
        return Unknown("a module that is not known")
    value = module.attributes.get(at, Unknown("no such module"))
    delete_attribute(machine, module, at)
    return value


_METHODS: Mapping[str, Callable[[Machine, ModuleValue, Arguments], Value]] = {
    "add_module": _add_module,
    "register_module": _add_module,
    "__setattr__": _add_module,
    "register_buffer": _register_buffer,
    "register_parameter": _register_parameter,
    "append": _append,
    "extend": extend,
    "insert": _insert,
    "update": update,
    "pop": _pop,
    "children": _children,
    "values": _children,
    "named_children": _named_children,
    "items": _named_children,
    "keys": _keys,
    "get_submodule": _submodule,
}
