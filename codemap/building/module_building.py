"""What constructors of `torch.nn` make, and copies of modules."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .layer_parts import own_parts, own_tensors
from .layers import bind_layer
from .objects import set_on_module
from .operators import items_of
from .signatures import Arguments
from .values import (
    MORE,
    Frame,
    ModuleValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from .machine import Machine


def build_layer(machine: Machine, name: str, given: Arguments, node: ast.AST, frame: Frame) -> ModuleValue:
    """A layer of `torch.nn`."""
    machine.budget.step(5)
    made = ModuleValue(f"torch.nn.{name}", None, frame.path, node)
    machine.note_module(made)
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
            extend(machine, module, Arguments([next(iter(bound.values()))]))
        case "ModuleDict" | "ParameterDict":
            update(machine, module, Arguments([next(iter(bound.values()))]))
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
    append_all(machine, module, items)


def append_all(machine: Machine, module: ModuleValue, items: list[Value]) -> None:
    """Items behind those that a container has; `MORE` leaves open how many follow."""
    is_named = any(not name.isdigit() for name in module.attributes)
    count = sum(1 for _ in module.children()) if is_named else len(module.attributes)
    for item in items:
        if item is MORE:
            module.has_more = True
        else:
            set_on_module(machine, module, str(count), item)
            count += 1


def extend(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    """`modules.extend(...)`."""
    held = given.get(0, "modules")
    items = [] if held is None else items_of(machine, held)
    append_all(machine, module, [MORE] if items is None else items)
    return module


def update(machine: Machine, module: ModuleValue, given: Arguments) -> Value:
    """`modules.update(...)`."""
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
