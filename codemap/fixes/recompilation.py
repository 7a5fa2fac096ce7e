"""Compiled code that is compiled again for every size: compile it for any."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .compiled import Compilation, compilations
from .edits import Patch
from .scene import scene, searcher
from .versions import is_older

_SLUG = "recompilation"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    found = compilations(view) if view is not None else []
    if view is None or not found:
        return None
    compilation = found[0]
    given = compilation.given("dynamic")
    if isinstance(given, ast.Constant) and given.value is True:
        return None
    file = compilation.outline
    place = file.location(compilation.node, case.location)
    related = () if place.line == case.location.line else (Related("the call that compiles again", case.location),)
    if any(one.id == "sizes" and one.value == "always the same" for one in case.finding.evidence):
        message = "the sizes are always the same: another value that the code depends on changes"
        return Confirmation(place, (), related, message)
    if compilation.has_unknown_arguments or "mark_dynamic" in file.text or is_older(case.device.torch_version, (2, 0)):
        return Confirmation(place, (), related)
    return Confirmation(place, (_fix(compilation),), related)


def _fix(compilation: Compilation) -> Fix:
    file, patch = compilation.outline, Patch(compilation.outline)
    if compilation.call is None:
        end = file.span(compilation.node)[1]
        patch.insert(end, "(dynamic=True)")
    else:
        column = file.position(file.span(compilation.call)[0])[1] - 1
        segment = file.segment(compilation.call)
        patch.replace(compilation.call, edit_call(segment, {"dynamic": "True"}, column=column))
    # Who asks for fixed sizes may rely on them.
    safety = Safety.SAFE if compilation.given("dynamic") is None else Safety.UNSAFE
    return Fix(_SLUG, "Compile for any size (dynamic=True)", safety, patch.edits())


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("torch.compile", ".compile(")))
