"""What a model does with an input: which modules run, on which shapes, and which gives what to which."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .classes import find
from .heap import Budget
from .layer_shapes import layer_output
from .layers import layer_name
from .machine import Machine
from .roots import GIVEN_UP, limited
from .signatures import Arguments
from .tensors import result
from .values import MORE, BoundMethod, Frame, FunctionValue, ModuleValue, Names, TensorValue, Unknown, Value

STEPS = 400_000
"""Statements and expressions that one model's `forward` may take."""
Shape = tuple[Value, ...] | None


@dataclass(slots=True)
class ModuleCalls:
    """The calls of one module."""

    module: ModuleValue
    count: int = 0
    inputs: tuple[Shape, ...] = ()
    """Shapes of the tensors that it was given when last called."""
    outputs: tuple[Shape, ...] = ()
    fed_by: set[ModuleValue] = field(default_factory=set)
    """The modules whose outputs it was given, as they are or computed on."""


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One call of a layer: of a module whose `forward` is none of the workspace's."""

    module: ModuleValue
    path: str
    """The file that calls it, or the container that it is in."""
    line: int


@dataclass(frozen=True, slots=True)
class Forward:
    """One pass through a model."""

    calls: Mapping[ModuleValue, ModuleCalls]
    """In the order of the first calls."""
    layers: tuple[LayerCall, ...]
    """The calls of layers, in order."""
    is_whole: bool
    """Whether it could be followed to its end."""


def follow(machine: Machine, model: ModuleValue, inputs: tuple[Value, ...]) -> Forward:
    """Follow a model's `forward` on inputs (tensors of known or unknown shape)."""
    run = _Run(machine)
    outer, machine.on_call = machine.on_call, run.call
    try:
        node = ast.Pass()
        frame = Frame(model.path, Names())
        found = limited(machine, Budget(STEPS), lambda: run.call(model, Arguments(list(inputs)), node, frame))
    finally:
        machine.on_call = outer
    return Forward(run.calls, tuple(run.layers), found is not GIVEN_UP and not run.has_failed)


class _Run:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.calls: dict[ModuleValue, ModuleCalls] = {}
        self.layers: list[LayerCall] = []
        self.has_failed = False
        self._running: list[ModuleValue] = []
        self._inside: list[set[ModuleValue]] = []
        """For each module that runs, itself and all that ran inside it."""

    def call(self, module: ModuleValue, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        """What a module gives; the call is noted."""
        self._machine.budget.step(3)
        tensors = list(tensors_in([*given.args, *given.kwargs.values()]))
        if self._running and module is not self._running[-1] and module.attributes is self._running[-1].attributes:
            # `super().forward(x)` of a class that derives from a layer
            return self._result(module, given, tensors, node, frame)
        calls = self.calls.setdefault(module, ModuleCalls(module))
        calls.count += 1
        calls.inputs = tuple(tensor.shape for tensor in tensors)
        calls.fed_by.update(source for tensor in tensors for source in tensor.sources if source is not module)
        self._running.append(module)
        self._inside.append({module})
        try:
            value = self._result(module, given, tensors, node, frame)
        finally:
            self._running.pop()
            inside = self._inside.pop()
            if self._inside:
                self._inside[-1] |= inside
        value = _from(value, module, inside)
        calls.outputs = tuple(tensor.shape for tensor in tensors_in([value]))
        return value

    def _result(
        self, module: ModuleValue, given: Arguments, tensors: list[TensorValue], node: ast.AST, frame: Frame
    ) -> Value:
        machine = self._machine
        forward = find(machine, module.cls, "forward") if module.cls is not None else None
        if isinstance(forward, FunctionValue):
            value = machine.call(BoundMethod(forward, module), given, node, frame)
            if isinstance(value, Unknown) and not value.alternatives:
                self.has_failed = True
                value = result(None)
            return value
        if module.dotted in ("torch.nn.Sequential", "torch.nn.DataParallel", "torch.nn.DistributedDataParallel"):
            return self._in_sequence(module, given, node, frame)
        name = layer_name(module.dotted)
        self.layers.append(LayerCall(module, frame.path, getattr(node, "lineno", 0)))
        return layer_output(name, module.layer_arguments, given) if name else result(None, *tensors)

    def _in_sequence(self, module: ModuleValue, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        value: Value = given.args[0] if given.args else result(None)
        for item in module.items():
            if item is MORE:
                return result(None, value)
            held = item.alternatives[0] if isinstance(item, Unknown) and item.alternatives else item
            if isinstance(held, ModuleValue):
                value = self.call(held, given if held is module else Arguments([value]), node, frame)
        return value


def _from(value: Value, module: ModuleValue, inside: set[ModuleValue]) -> Value:
    """What a module gives, as coming from it and from those of its parts that made it."""
    if isinstance(value, TensorValue):
        return replace(value, sources=frozenset(one for one in value.sources if one in inside) | {module})
    if isinstance(value, tuple):
        return tuple(_from(one, module, inside) for one in value)
    if isinstance(value, list):
        return [one if one is MORE else _from(one, module, inside) for one in value]
    if isinstance(value, dict):
        return {key: _from(one, module, inside) for key, one in value.items()}
    if isinstance(value, Unknown) and value.alternatives:
        return _from(value.alternatives[0], module, inside)
    return value


def tensors_in(values: list[Value], depth: int = 4) -> Iterator[TensorValue]:
    """The tensors among values, and in the tuples, lists and dicts among them."""
    for value in values:
        if isinstance(value, TensorValue):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from tensors_in(list(value), depth - 1)
        elif depth and isinstance(value, dict):
            yield from tensors_in(list(value.values()), depth - 1)
