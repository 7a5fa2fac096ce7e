"""Finding the `DataLoader(...)` that feeds a statement."""

from __future__ import annotations

import ast

from .outline import LOOPS, header, last_name
from .resolve import Definition, Resolver, Value
from .scene import Frame, Scene
from .settings import Argument, argument

_POSITIONS = {"dataset": 0, "batch_size": 1, "shuffle": 2, "num_workers": 5, "collate_fn": 6, "pin_memory": 7}


def is_loader(value: Value) -> bool:
    """Whether an expression makes a `torch.utils.data.DataLoader` (or one of a class named like it)."""
    if not isinstance(value.node, ast.Call):
        return False
    return last_name(value.node.func).endswith("DataLoader") and not last_name(value.node.func).startswith("get")


def loader_argument(resolver: Resolver, loader: Value, name: str) -> Argument:
    """An argument of a loader's constructor."""
    return argument(resolver, loader, name, _POSITIONS.get(name))


def loaders_at(scene: Scene) -> list[Value]:
    """The constructors of the loaders that the place waits for: those in its statements, those behind the loops and
    `next` calls of the innermost frame that has any. Nearest first."""
    for frame in scene.frames:
        if own := _own(frame):
            return own
        found: dict[ast.AST, Value] = {}
        for source in _iterated(frame):
            found.update({loader.node: loader for loader in scene.resolver.find(source, is_loader)})
        if found:
            return list(found.values())
    return []


def feeding(resolver: Resolver, tensor: Value) -> list[Value]:
    """The constructors of the loaders that a batch (or a part of one) came out of."""
    return resolver.find(tensor, is_loader)


def dataset_class(resolver: Resolver, loader: Value) -> Definition | None:
    """The workspace's class of the loader's dataset."""
    given = loader_argument(resolver, loader, "dataset").value
    if given is None:
        return None
    made = resolver.find(given, lambda one: resolver.instance_class(one) is not None)
    return resolver.instance_class(made[0]) if made else None


def _own(frame: Frame) -> list[Value]:
    return [Value(frame.outline, call) for call in frame.calls() if is_loader(Value(frame.outline, call))]


def _iterated(frame: Frame) -> list[Value]:
    """What the frame's statements iterate: their own loop headers and `next` calls, then the loops around them."""
    found: list[ast.expr] = []
    for statement in frame.statements:
        if isinstance(statement, ast.For | ast.AsyncFor):
            found.append(statement.iter)
        for expression in header(statement):
            for node in ast.walk(expression):
                if isinstance(node, ast.comprehension):
                    found.append(node.iter)
                elif isinstance(node, ast.Call) and last_name(node.func) in ("next", "__next__"):
                    found.extend([*node.args, node.func])
        found.extend(
            above.iter
            for above in frame.outline.ancestors(statement)
            if isinstance(above, LOOPS) and not isinstance(above, ast.While)
        )
    return [Value(frame.outline, node) for node in found]
