"""How faults change models: find parts, replace them, put something round their methods.

What is put round a method leaves no frame of its own in a recording, and `labels.py` gives the frames of `faults` a
neutral file name, so that nothing but what a fault does tells that it is there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from torch import nn

Part = TypeVar("Part", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Place(Generic[Part]):
    """Where a part of a model is."""

    parent: nn.Module
    name: str
    """Its attribute in the parent."""
    part: Part

    def replace(self, other: nn.Module) -> None:
        """Put another part in its place, in the same mode."""
        setattr(self.parent, self.name, other.train(self.part.training))


def find(model: nn.Module, kind: type[Part], wanted: Callable[[Part], object] = lambda part: True) -> list[Place[Part]]:
    """All parts of a kind, except the model itself, that answer `wanted` with yes; in the order of definition, each
    once."""
    found = [
        Place(parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, kind) and wanted(child)
    ]
    return list({id(place.part): place for place in found}.values())


def choose(places: Sequence[Place[Part]], rng: random.Random, least: float = 0.3) -> list[Place[Part]]:
    """Some of the places at random, in their order: at least that share of them, and at least one if there is any."""
    if not places:
        return []
    count = rng.randint(max(1, math.ceil(least * len(places))), len(places))
    return [places[index] for index in sorted(rng.sample(range(len(places)), count))]


def wrap_forward(module: nn.Module, function: Callable[..., Any]) -> None:
    """From now on calling the module calls `function(original, *args, **kwargs)`, `original` being its forward."""
    wrap_method(module, "forward", function)


def wrap_method(module: nn.Module, name: str, function: Callable[..., Any]) -> None:
    """The same for any method: `wrap_method(attention, "core", …)`."""
    setattr(module, name, partial(function, getattr(module, name)))
