"""A recording that begins with compilation: where the model is compiled."""

from __future__ import annotations

from .base import Case, Confirmation, Fixer
from .compiled import compilations
from .scene import scene, searcher

_SLUG = "compile-inside-measured"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    found = compilations(view) if view is not None else []
    if not found:
        return None
    return Confirmation(found[0].outline.location(found[0].node, case.location))


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("torch.compile", ".compile(")))
