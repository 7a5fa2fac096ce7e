"""What constructors of `torch.nn` and methods of `nn.Module` do to a module."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .layer_parts import dtype_name, own_parts, own_tensors
from .layers import bind_layer, layer_name
from .objects import delete_attribute, get_attribute, set_on_module
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
_CASTS = {"half": "float16", "bfloat16": "bfloat16", "double": "float64", "float": "float32"}


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


def build_layer(machine: Machine, name: str, given: Arguments, node: ast.AST, frame: Frame) -> ModuleValue:
    """A layer of `torch.nn`."""
    machine.budget.step(5)
    made = ModuleValue(f"torch.nn.{name}", None, frame.path, node)
    machine.built.append(made)
    if not machine.constructing:
        machine.outermost.append(made)
    construct_layer(machine, made, name, given, node, frame)
    made.arguments = made.layer_arguments
    return made


def construct_layer(
    machine: Machine, module: ModuleValue, name: str, given: Arguments, node: ast.AST, frame: Frame
) -> None:
    """Do to a module what the constructor of a layer of `torch.nn` does."""
    if name == "Module":
        return
    bound = bind_layer(name, given)
    module.layer_arguments = bound
    machine.heap.write(module.attributes)
    match name:
        case "Sequential":
            _fill_sequence(machine, module, list(given.args))
        case "ModuleList" | "ParameterList":
            _extend(machine, module, Arguments([next(iter(bound.values()))]))
        case "ModuleDict" | "ParameterDict":
            _update(machine, module, Arguments([next(iter(bound.values()))]))
        case "TransformerEncoder" | "TransformerDecoder":
            _copies(machine, module, bound)
        case "Transformer":
            _transformer(machine, module, bound, node, frame)
        case "DataParallel" | "DistributedDataParallel":
            module.attributes["module"] = given.get(0, "module")
        case _:
            for attribute, tensor in own_tensors(name, bound).items():
                module.attributes[attribute] = tensor
            for attribute, layer, arguments in own_parts(name, bound):
                module.attributes[attribute] = _part(machine, layer, arguments, node, frame)
            _order_parts(module, name)


def _part(machine: Machine, layer: str, arguments: dict[str, Value], node: ast.AST, frame: Frame) -> ModuleValue:
    """A module that a library's layer makes for itself."""
    machine.constructing.append(ModuleValue(""))
    try:
        return build_layer(machine, layer, Arguments([], arguments), node, frame)
    finally:
        machine.constructing.pop()


def _order_parts(module: ModuleValue, name: str) -> None:
    """Parts in torch's order of registration."""
    if name == "TransformerDecoderLayer":
        order = (
            *("self_attn", "multihead_attn", "linear1", "dropout", "linear2"),
            *("norm1", "norm2", "norm3", "dropout1", "dropout2", "dropout3"),
        )
        held = dict(module.attributes)
        module.attributes.clear()
        module.attributes.update({key: held[key] for key in order})


def _fill_sequence(machine: Machine, module: ModuleValue, items: list[Value]) -> None:
    if len(items) == 1 and isinstance(items[0], dict):
        for name, value in items[0].items():
            if isinstance(name, str):
                set_on_module(machine, module, name, value)
            else:
                module.has_more = True
        return
    _append_all(machine, module, items)


def _append_all(machine: Machine, module: ModuleValue, items: list[Value]) -> None:
    """Items behind those that a container has; `MORE` leaves open how many follow."""
    is_named = any(not name.isdigit() for name in module.attributes)
    count = sum(1 for _ in module.children()) if is_named else len(module.attributes)
    for item in items:
        if item is MORE:
            module.has_more = True
        else:
            set_on_module(machine, module, str(count), item)
            count += 1


def _extend(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    from .expressions import items_of

    held = given.get(0, "modules")
    items = [] if held is None else items_of(machine, held)
    _append_all(machine, module, [MORE] if items is None else items)
    return module


def _append(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    _append_all(machine, module, [given.get(0, "module")])
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
    _append_all(machine, module, items)
    return module


def _update(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    held = given.get(0, "modules")
    if isinstance(held, (list, tuple)):
        held = {pair[0]: pair[1] for pair in held if isinstance(pair, (list, tuple)) and len(pair) == 2}
    if isinstance(held, ModuleValue):
        held = dict(held.attributes)
    if isinstance(held, dict):
        for name, value in held.items():
            if isinstance(name, str):
                set_on_module(machine, module, name, value)
            else:
                module.has_more = True
    elif held is not None:
        module.has_more = True
    return None


def _copies(machine: Machine, module: ModuleValue, bound: Mapping[str, Value]) -> None:
    """`TransformerEncoder(layer, count, norm)`: copies of a layer."""
    layer = bound.get("encoder_layer", bound.get("decoder_layer"))
    count = bound["num_layers"]
    layers = ModuleValue("torch.nn.ModuleList", path=module.path, node=module.node)
    times = count if type(count) is int and 0 <= count <= 1000 else 1
    layers.attributes.update({str(at): deep_copy(layer, {}, machine) for at in range(times)})
    layers.has_more = times is not count
    module.attributes["layers"] = layers
    if bound["norm"] is not None:
        module.attributes["norm"] = bound["norm"]


def _transformer(
    machine: Machine, module: ModuleValue, bound: Mapping[str, Value], node: ast.AST, frame: Frame
) -> None:
    shared = {key: bound[key] for key in ("device", "dtype", "bias")}
    norm: dict[str, Value] = {"normalized_shape": bound["d_model"], "eps": bound["layer_norm_eps"], **shared}
    names = ("d_model", "nhead", "dim_feedforward", "dropout", "activation", "layer_norm_eps", "batch_first")
    layer: dict[str, Value] = {key: bound[key] for key in (*names, "norm_first")} | shared
    for part, kind in (("encoder", "TransformerEncoder"), ("decoder", "TransformerDecoder")):
        if bound[f"custom_{part}"] is not None:
            module.attributes[part] = bound[f"custom_{part}"]
            continue
        given: dict[str, Value] = {
            f"{part}_layer": _part(machine, f"{kind}Layer", layer, node, frame),
            "num_layers": bound[f"num_{part}_layers"],
            "norm": _part(machine, "LayerNorm", norm, node, frame),
        }
        module.attributes[part] = _part(machine, kind, given, node, frame)


def deep_copy(value: Value, made: dict[int, Value], machine: Machine) -> Value:
    """A copy of a value with everything that can be changed in it."""
    machine.budget.step()
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, ModuleValue):
        copy = replace(value, attributes={})
        made[id(value)] = copy
        copy.attributes.update({name: deep_copy(held, made, machine) for name, held in value.attributes.items()})
        return copy
    if isinstance(value, TensorValue):
        made[id(value)] = replace(value)
        return made[id(value)]
    if isinstance(value, list):
        items: list[Value] = []
        made[id(value)] = items
        items.extend(deep_copy(item, made, machine) for item in value)
        return items
    if isinstance(value, dict):
        pairs: dict[Value, Value] = {}
        made[id(value)] = pairs
        pairs.update({key: deep_copy(item, made, machine) for key, item in value.items()})
        return pairs
    return value


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
    dtype = _CASTS.get(name) or next((one for one in named if one.startswith(("float", "bfloat"))), "")
    if not dtype:
        return
    waiting, seen = [module], {id(module)}
    while waiting:
        current = waiting.pop()
        machine.budget.step()
        machine.heap.write(current.attributes)
        for key, value in current.attributes.items():
            if isinstance(value, TensorValue) and value.dtype.startswith(("float", "bfloat")):
                current.attributes[key] = replace(value, dtype=dtype)
        below = [child.module for child in current.children() if id(child.module) not in seen]
        seen.update(id(one) for one in below)
        waiting.extend(below)


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


def _setattr(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    return _add_module(machine, module, given)


_METHODS: Mapping[str, Callable[[Machine, ModuleValue, Arguments], Value]] = {
    "add_module": _add_module,
    "register_module": _add_module,
    "__setattr__": _setattr,
    "register_buffer": _register_buffer,
    "register_parameter": _register_parameter,
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "update": _update,
    "pop": _pop,
    "children": _children,
    "values": _children,
    "named_children": _named_children,
    "items": _named_children,
    "keys": _keys,
    "get_submodule": _submodule,
    "register_forward_hook": lambda _machine, _module, _given: Unknown("a hook"),
}


def module_attribute(machine: Machine, module: ModuleValue, name: str, node: ast.AST, frame: Frame) -> Value:
    """An attribute as `getattr` gives it, dots followed."""
    value: Value = module
    for part in name.split("."):
        value = get_attribute(machine, value, part, node, frame)
    return value
