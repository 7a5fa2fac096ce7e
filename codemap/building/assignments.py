"""What binding a target does."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .objects import set_attribute, set_item
from .operators import items_of
from .values import (
    MORE,
    Frame,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from .machine import Machine


def assign(machine: Machine, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind a target of an assignment, a loop or a `with`."""
    match target:
        case ast.Name(id=name):
            bind_name(machine, name, value, frame)
        case ast.Attribute(value=held, attr=name):
            set_attribute(machine, machine.evaluate(held, frame), name, value)
        case ast.Subscript(value=held, slice=index):
            set_item(machine, machine.evaluate(held, frame), machine.evaluate(index, frame), value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            _unpack(machine, parts, value, frame)
        case ast.Starred(value=held):
            assign(machine, held, value, frame)
        case _:
            pass


def bind_name(machine: Machine, name: str, value: Value, frame: Frame) -> None:
    """Bind a name in the frame that it belongs to."""
    if name in frame.outer:
        outer = frame.parent
        while outer is not None and outer.parent is not None and name not in outer.names:
            outer = outer.parent
        frame = outer or frame
    machine.heap.write(frame.names)
    frame.names[name] = value


def _unpack(machine: Machine, parts: Sequence[ast.expr], value: Value, frame: Frame) -> None:
    items = items_of(machine, value)
    star = next((at for at, part in enumerate(parts) if isinstance(part, ast.Starred)), None)
    if items is None or MORE in items or (star is None and len(items) != len(parts)) or len(items) < len(parts) - 1:
        for part in parts:
            assign(machine, part, Unknown("part of a value that is not known"), frame)
        return
    if star is not None:
        behind = len(parts) - star - 1
        middle = items[star : len(items) - behind]
        items = [*items[:star], middle, *items[len(items) - behind :]]
    for part, item in zip(parts, items, strict=False):
        assign(machine, part, item, frame)
