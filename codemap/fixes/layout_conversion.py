"""What the fixers of memory layouts share: the model that is not converted yet, and the edit that converts it."""

from __future__ import annotations

from dataclasses import dataclass

from ...analyzer.findings import Location, Related, TextEdit
from .base import Case
from .edits import Patch
from .memory_format import Layout, convert_input, convert_model, is_converted
from .models import ModelCall, assigned_target, chain_end, model_call
from .resolve import Value
from .scene import Scene, scene


@dataclass(frozen=True, slots=True)
class Unconverted:
    """A model that runs in the layout in which it was made."""

    view: Scene
    model: ModelCall
    construction: Value
    place: Location
    """Where it is made."""
    related: tuple[Related, ...]

    def edits(self, to: Layout) -> tuple[TextEdit, ...]:
        """Put the model and its input into another layout."""
        patch = Patch(self.construction.outline)
        convert_model(patch, self.construction.node, to)
        if self.model.outline is self.construction.outline:
            convert_input(patch, self.model, self.view.resolver, to)
            return patch.edits()
        other = Patch(self.model.outline)
        convert_input(other, self.model, self.view.resolver, to)
        return (*patch.edits(), *other.edits())


def unconverted_model(case: Case) -> Unconverted | None:
    """The model that runs at a case's place; None where there is none, or it has been given a layout already."""
    view = scene(case)
    model = model_call(view) if view is not None else None
    if view is None or model is None:
        return None
    construction = model.constructions[0]
    file = construction.outline
    chain = chain_end(file, construction.node)
    if is_converted(file, assigned_target(file, chain), chain):
        return None
    place = file.location(file.statement(construction.node), case.location)
    called = model.outline.location(model.outline.statement(model.call), case.location)
    return Unconverted(view, model, construction, place, (Related("the model's input", called),))
