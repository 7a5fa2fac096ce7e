"""Models as the source builds them."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from .building.forward import Forward, follow
from .building.program import Program
from .building.roots import descendants
from .building.signatures import signature_of
from .building.values import (
    BoundMethod,
    ClassValue,
    FunctionValue,
    Kind,
    LibraryValue,
    ModuleValue,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
)
from .module_placed import PlacedCall
from .modules import At, Basis, Module, Tensor, shape_of
from .statements import qualname_at

_MOST_TEXT = 60
_MOST_MODULES = 20_000


@dataclass(frozen=True, slots=True)
class SourceModel:
    """A model, with connections and feature maps as far as its `forward` can be followed."""

    root: Module
    calls: tuple[PlacedCall, ...]
    """The calls of layers that its `forward` makes, in order."""


def source_models(program: Program, given: tuple[int, ...] | None = None) -> tuple[SourceModel, ...]:
    """Every model that the source builds. `given` is the size of what goes in, where the source does not say it."""
    return tuple(source_model(program, root, given) for root in program.roots())


def source_model(program: Program, root: ModuleValue, given: tuple[int, ...] | None = None) -> SourceModel:
    """One model."""
    conversion = _Conversion(program, root, follow(program.machine, root, _inputs(program, root, given)))
    return SourceModel(conversion.module(root), conversion.layer_calls())


def _inputs(program: Program, root: ModuleValue, given: tuple[int, ...] | None) -> tuple[Value, ...]:
    """What the model is called with: as given, as the source was seen to do it, or tensors of unknown size."""
    function = program.method(root, "forward")
    count = len(signature_of(function.node.args).positional) - 1 if function is not None else 1
    defaults = len(function.defaults) if function is not None else 0
    needed = max(count - defaults, 1 if count else 0)
    rest: tuple[Value, ...] = tuple(TensorValue(None, "") for _ in range(needed))
    if given is not None:
        return (TensorValue(given), *rest[1:])
    return root.inputs or rest


class _Conversion:
    def __init__(self, program: Program, root: ModuleValue, forward: Forward) -> None:
        self._program = program
        self._forward = forward
        self._paths: dict[ModuleValue, str] = {}
        self._certain: dict[ModuleValue, bool] = {}
        for (path, module, is_certain), _ in zip(descendants(root), range(_MOST_MODULES), strict=False):
            self._paths[module] = path
            self._certain[module] = is_certain
        self._order = {module: at for at, module in enumerate(forward.calls)}
        self._seen: set[int] = set()
        self._feeds = self._connections()

    def module(self, value: ModuleValue) -> Module:
        """The module as a value; each of a model's modules stands where it is found first."""
        path = self._paths[value]
        calls = self._forward.calls.get(value)
        tensors = tuple(self._tensors(value))
        is_deeper = any(child.module not in self._paths for child in value.children())
        note = "what is inside is the library's" if value.is_opaque else value.problem
        below = [
            self.module(child.module)
            for child in value.children()
            if self._paths.get(child.module) == (f"{path}.{child.name}" if path else child.name)
        ]
        return Module(
            path=path,
            class_name=value.name,
            origin=value.dotted if value.cls is None else _dotted(value.cls),
            basis=Basis.SOURCE,
            defined_at=None if value.cls is None else At(value.cls.path, value.cls.node.lineno, value.cls.name),
            built_at=self._built_at(value),
            arguments={name: text_of(one) for name, one in value.arguments.items()},
            tensors=tensors,
            children=tuple(below),
            feeds=self._feeds.get(value, ()),
            inputs=() if calls is None else tuple(shape_of(one) for one in calls.inputs),
            outputs=() if calls is None else tuple(shape_of(one) for one in calls.outputs),
            calls_per_step=None if calls is None or not self._forward.is_whole else float(calls.count),
            call_order=self._order.get(value),
            is_certain=self._certain[value],
            has_more=value.has_more or is_deeper,
            note=note or ("what lies deeper is left out" if is_deeper else ""),
        )

    def layer_calls(self) -> tuple[PlacedCall, ...]:
        """The calls of layers in the model, in order."""
        return tuple(
            PlacedCall(self._paths[call.module], call.module.name, call.path, call.line)
            for call in self._forward.layers
            if call.module in self._paths
        )

    def _tensors(self, value: ModuleValue) -> Iterator[Tensor]:
        for name, tensor in value.tensors():
            is_shared = id(tensor) in self._seen
            self._seen.add(id(tensor))
            is_buffer = tensor.kind is Kind.BUFFER
            yield Tensor(name, shape_of(tensor.shape), tensor.dtype, tensor.is_trainable, is_buffer, is_shared)

    def _built_at(self, value: ModuleValue) -> At | None:
        line = getattr(value.node, "lineno", 0)
        if not isinstance(value.node, ast.expr) or not line:
            return None
        return At(value.path, line, qualname_at(self._program.known.file(value.path), line))

    def _connections(self) -> Mapping[ModuleValue, tuple[str, ...]]:
        """Which modules get a module's output: its siblings, and of innermost modules other innermost ones."""
        found: dict[ModuleValue, dict[str, None]] = {}
        called = {path for module, path in self._paths.items() if module in self._forward.calls}
        inner = {module for module in self._paths if not any(True for _ in module.children())}
        for module, calls in self._forward.calls.items():
            path = self._paths.get(module)
            for source in sorted(calls.fed_by, key=lambda one: self._order.get(one, 0)):
                start = self._paths.get(source)
                if path is None or start is None:
                    continue
                are_siblings = _caller(start, called) == _caller(path, called)
                if are_siblings or (source in inner and module in inner):
                    found.setdefault(source, {})[path] = None
        return {source: tuple(paths) for source, paths in found.items()}


def _caller(path: str, called: Container[str]) -> str:
    """The nearest module above a path that is called: a list of modules is not."""
    while path:
        path = path.rpartition(".")[0]
        if path in called:
            return path
    return ""


def _dotted(cls: ClassValue) -> str:
    return f"{cls.path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}.{cls.name}"


@dataclass(slots=True)
class _Room:
    left: int = 40


def text_of(value: Value) -> str:
    """A value as short text; "?" for what is not known."""
    text = _text(value, _Room())
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."


def _text(value: Value, room: _Room) -> str:
    room.left -= 1
    if room.left < 0:
        return "..."
    match value:
        case Unknown():
            return "?"
        case LibraryValue() | ModuleValue() | ClassValue() | FunctionValue():
            return value.name
        case BoundMethod():
            return value.function.name
        case PartialValue():
            given = [
                *(_text(one, room) for one in value.args),
                *(f"{k}={_text(v, room)}" for k, v in value.kwargs.items()),
            ]
            return f"{_text(value.callee, room)}({', '.join(given)})"
        case TensorValue():
            return "tensor"
        case ObjectValue():
            return value.cls.name if value.cls is not None else value.dotted.rpartition(".")[2]
        case list():
            return f"[{', '.join(_text(one, room) for one in value)}]"
        case tuple():
            return f"({', '.join(_text(one, room) for one in value)}{',' if len(value) == 1 else ''})"
        case dict():
            return "{" + ", ".join(f"{_text(key, room)}: {_text(one, room)}" for key, one in value.items()) + "}"
        case str():
            return repr(value[:_MOST_TEXT])
        case int() | float() | bool() | None:
            return repr(value)
        case _:
            return type(value).__name__
