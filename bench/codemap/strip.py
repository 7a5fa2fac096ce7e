"""The same recording as if less had been recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from .clock import PREFIX

_AUTOMATIC = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#", "DistributedDataParallel.", "autograd::")
"""Annotations that torch makes by itself."""
_SHAPES = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")


class Mode(Enum):
    """What is left of a recording."""

    STACK = "stack"
    """Everything."""
    MODULE = "module"
    """Of the Python events only the calls of modules; no range of the program's own; shapes."""
    SHAPE = "shape"
    """No Python event, no range of the program's own; shapes."""
    TAG = "tag"
    """The program's own ranges; no Python event, no shapes."""
    BARE = "bare"
    """Operators and their order."""


def strip(document: dict[str, Any], mode: Mode) -> dict[str, Any]:
    """A trace, decoded, with what `mode` leaves of it, and without the line clock's marks."""
    return {**document, "traceEvents": list(_events(document["traceEvents"], mode))}


def is_automatic(name: str) -> bool:
    """Whether a range is one of those that torch opens by itself."""
    return name.startswith(_AUTOMATIC)


def _events(events: Iterable[dict[str, Any]], mode: Mode) -> Iterator[dict[str, Any]]:
    for event in events:
        if not event.get("name", "").startswith(PREFIX) and (left := _left(event, mode)) is not None:
            yield left


def _left(event: dict[str, Any], mode: Mode) -> dict[str, Any] | None:
    if mode is Mode.STACK:
        return event
    category, name = event.get("cat"), event.get("name", "")
    if category == "python_function" and not (mode is Mode.MODULE and name.startswith("nn.Module: ")):
        return None
    if category == "user_annotation" and mode is not Mode.TAG and not is_automatic(name):
        return None
    arguments = event.get("args")
    if mode in (Mode.TAG, Mode.BARE) and arguments:
        event = {**event, "args": {key: value for key, value in arguments.items() if key not in _SHAPES}}
    return event
