"""Arguments of a call, through `**kwargs` and configuration: where the number that is passed was written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .outline import last_name, outline
from .resolve import Resolver, Value


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call passes for one parameter. `is_unknown`: something opaque (`**cfg`, `*args`) may pass it."""

    value: Value | None = None
    is_unknown: bool = False


def argument(resolver: Resolver, call: Value, name: str, position: int | None = None) -> Argument:
    """The argument called `name` (or at `position`) of a call."""
    assert isinstance(call.node, ast.Call)
    for keyword in call.node.keywords:
        if keyword.arg == name:
            return Argument(Value(call.outline, keyword.value))
    if any(isinstance(arg, ast.Starred) for arg in call.node.args):
        return Argument(is_unknown=True)
    if position is not None and position < len(call.node.args):
        return Argument(Value(call.outline, call.node.args[position]))
    for keyword in call.node.keywords:
        if keyword.arg is None:
            held = _in_mapping(resolver, Value(call.outline, keyword.value), name)
            if held.value is not None or held.is_unknown:
                return held
    return Argument()


def constants(resolver: Resolver, value: Value) -> list[Value]:
    """The literals that a value was given: its own, an assignment's, an `add_argument` default, a config field."""
    found = resolver.find(value, lambda one: isinstance(one.node, ast.Constant) and not isinstance(one.node.value, str))
    # `args.workers` also leads to the parser and whatever it was made of: only literals of the name's own count.
    if isinstance(value.node, ast.Attribute):
        named = list(_configured(resolver, value.node.attr))
        return named or [one for one in found if _is_bound_to(one, value.node.attr)]
    if isinstance(value.node, ast.Subscript) and isinstance(value.node.slice, ast.Constant):
        return [one for one in found if isinstance(one.outline.parents[one.node], ast.Dict)]
    return found


def texts(resolver: Resolver, value: Value) -> list[Value]:
    """The literal texts that a value was given: its own, an assignment's, an `add_argument` default, a config field."""
    if isinstance(value.node, ast.Attribute) and (named := list(_configured(resolver, value.node.attr))):
        return [one for one in named if _is_text(one)]
    return resolver.find(value, _is_text)


def _is_text(value: Value) -> bool:
    return isinstance(value.node, ast.Constant) and isinstance(value.node.value, str)


def _in_mapping(resolver: Resolver, mapping: Value, name: str) -> Argument:
    displays = resolver.find(
        mapping,
        lambda one: (
            isinstance(one.node, ast.Dict)
            or (isinstance(one.node, ast.Call) and one.outline.dotted(one.node.func) == "dict")
        ),
    )
    for one in displays:
        if isinstance(one.node, ast.Dict):
            for key, held in zip(one.node.keys, one.node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return Argument(Value(one.outline, held))
        elif isinstance(one.node, ast.Call):
            for keyword in one.node.keywords:
                if keyword.arg == name:
                    return Argument(Value(one.outline, keyword.value))
    if (given := _set_by_key(mapping, name)) is not None:
        return Argument(given)
    return Argument(is_unknown=not displays)


def _set_by_key(mapping: Value, name: str) -> Value | None:
    """What `options["name"] = ...` gives, for a mapping that is a plain name."""
    if not isinstance(mapping.node, ast.Name):
        return None
    for statement in mapping.outline.statements:
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=held), slice=ast.Constant(value=key))]) if (
                held == mapping.node.id and key == name
            ):
                return Value(mapping.outline, statement.value)
            case _:
                pass
    return None


def _configured(resolver: Resolver, name: str) -> Iterator[Value]:
    """Defaults of `--name` options (argparse, click, absl) and of fields called `name` in classes."""
    for path in resolver.workspace.paths():
        source = resolver.workspace.file(path)
        if source is None or (name not in source.text and name.replace("_", "-") not in source.text):
            continue
        if (file := outline(source)) is None:
            continue
        for call in (*file.calls("add_argument"), *file.calls("option"), *file.calls("DEFINE_integer")):
            flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if name in _destinations(call, flags):
                for keyword in call.keywords:
                    if keyword.arg == "default" and isinstance(keyword.value, ast.Constant):
                        yield Value(file, keyword.value)
        for statement in file.statements:
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.value, ast.Constant)
                and last_name(statement.target) == name
                and isinstance(file.parents[statement], ast.ClassDef)
            ):
                yield Value(file, statement.value)


def _destinations(call: ast.Call, flags: list[str]) -> set[str]:
    given = {
        str(keyword.value.value)
        for keyword in call.keywords
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant)
    }
    return given or {flag.lstrip("-").replace("-", "_") for flag in flags}


def _is_bound_to(value: Value, name: str) -> bool:
    statement = value.outline.statement(value.node)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
    return any(last_name(target) == name for target in targets)
