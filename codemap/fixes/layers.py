"""Layers of `torch.nn` behind a call: their constructors, and what these were given."""

from __future__ import annotations

import ast

from .outline import Outline, find
from .resolve import Resolver, Value
from .settings import argument

CONV_POSITIONS = {
    "in_channels": 0,
    "out_channels": 1,
    "kernel_size": 2,
    "stride": 3,
    "padding": 4,
    "dilation": 5,
    "groups": 6,
    "bias": 7,
    "padding_mode": 8,
}
CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d")
NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


def is_layer(value: Value, kinds: tuple[str, ...]) -> bool:
    """Whether an expression constructs one of `torch.nn`'s layers of these names."""
    if not isinstance(value.node, ast.Call):
        return False
    home, _, kind = value.outline.dotted(value.node.func).rpartition(".")
    return kind in kinds and (home == "torch.nn" or home.startswith("torch.nn.modules"))


def layers_behind(resolver: Resolver, value: Value, kinds: tuple[str, ...]) -> list[Value]:
    """The constructors of the layers that an expression (`self.proj`) may be; none if it may be something else too."""

    def is_made(one: Value) -> bool:
        """A call that makes an object: its arguments are not what the expression is."""
        return isinstance(one.node, ast.Call) and not _is_own_function(resolver, one)

    if not _names_an_object(resolver, value):
        return []
    made = resolver.find(value, is_made)
    return made if made and all(is_layer(one, kinds) for one in made) else []


def has_layers(resolver: Resolver, construction: Value, kinds: tuple[str, ...]) -> bool | None:
    """Whether a model that is constructed there makes layers of these names; None where its class is not in sight."""
    made = resolver.instance_class(construction)
    if made is None:
        parts = [Value(construction.outline, call) for call in find(construction.node, ast.Call)]
        return any(is_layer(part, kinds) for part in parts) or None
    files = {owner.outline for owner in (made, *resolver.bases(made))}
    return any(file.calls(kind) for file in files for kind in kinds) or None


def given_to(resolver: Resolver, layer: Value, name: str) -> Value | None:
    """What a convolution's constructor is given for a parameter; None if nothing (the default holds)."""
    return argument(resolver, layer, name, CONV_POSITIONS.get(name)).value


def callers_of(file: Outline, kinds: tuple[str, ...], keyword: str = "") -> list[str]:
    """How a file calls what it makes of layers of these names (given the keyword, if one is named), each as it is
    written: `self.proj(` for `self.proj = nn.Conv2d(...)`. Enough to look for, not to be sure of."""
    found: dict[str, None] = {}
    for call in (call for kind in kinds for call in file.calls(kind)):
        is_given = len(call.args) > CONV_POSITIONS.get(keyword, 0) or any(one.arg == keyword for one in call.keywords)
        if keyword and not is_given:
            continue
        statement = file.statement(call)
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            found.update((f"{file.segment(name)}(", None) for name in _names(target))
    return list(found)


def _names(target: ast.expr) -> list[ast.expr]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]


def is_opaque(layer: Value) -> bool:
    """Whether a constructor takes arguments that its text does not name (`*args`, `**options`)."""
    assert isinstance(layer.node, ast.Call)
    return any(isinstance(arg, ast.Starred) for arg in layer.node.args) or any(
        keyword.arg is None for keyword in layer.node.keywords
    )


def numbers_of(node: ast.expr) -> tuple[int, ...]:
    """The whole numbers that an expression spells, one or a tuple of them; () for anything else."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    found = [part.value for part in parts if isinstance(part, ast.Constant) and type(part.value) is int]
    return tuple(found) if len(found) == len(parts) else ()


def free_names(file: Outline, node: ast.AST, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """`wanted`, each with an underscore behind it if the function round `node` uses one of them already."""
    used = {one.id for one in ast.walk(file.function(node)) if isinstance(one, ast.Name)}
    used |= {one.arg for one in ast.walk(file.function(node)) if isinstance(one, ast.arg)}
    while used & set(wanted):
        wanted = tuple(f"{name}_" for name in wanted)
    return wanted


def _names_an_object(resolver: Resolver, value: Value) -> bool:
    """A name, an attribute of `self`, or of an object whose class is known: not the method of a tensor."""
    match value.node:
        case ast.Name() | ast.Attribute(value=ast.Name(id="self" | "cls")):
            return True
        case ast.Attribute(value=held):
            made = resolver.find(Value(value.outline, held), lambda one: resolver.instance_class(one) is not None)
            return bool(made)
        case _:
            return False


def _is_own_function(resolver: Resolver, call: Value) -> bool:
    """A call of one of the workspace's functions: what it returns is looked at."""
    assert isinstance(call.node, ast.Call)
    made = resolver.definition(Value(call.outline, call.node.func))
    return made is not None and not isinstance(made.node, ast.ClassDef)
