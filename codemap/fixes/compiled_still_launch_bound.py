"""Compiled code that launches its kernels one by one: let CUDA graphs launch them."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .compiled import Compilation, compilations
from .edits import Patch
from .scene import scene, searcher

_SLUG = "compiled-still-launch-bound"
_WITH_GRAPHS = ("reduce-overhead", "max-autotune")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    found = compilations(view) if view is not None and not case.device.is_cpu else []
    if not found:
        return None
    compilation = found[0]
    mode = compilation.given("mode")
    is_known = mode is None or isinstance(mode, ast.Constant)
    if isinstance(mode, ast.Constant) and mode.value in _WITH_GRAPHS:
        return None
    place = compilation.outline.location(compilation.node, case.location)
    related = () if place.line == case.location.line else (Related("the call that launches them", case.location),)
    is_other = isinstance(mode, ast.Constant) and mode.value not in (None, "default")
    if not is_known or is_other or compilation.given("options") or compilation.has_unknown_arguments:
        return Confirmation(place, (), related, "the mode is set on purpose, or out of sight")
    return Confirmation(place, (_fix(compilation),), related)


def _fix(compilation: Compilation) -> Fix:
    file, patch = compilation.outline, Patch(compilation.outline)
    if compilation.call is None:
        patch.insert(file.span(compilation.node)[1], '(mode="reduce-overhead")')
    else:
        column = file.position(file.span(compilation.call)[0])[1] - 1
        segment = file.segment(compilation.call)
        patch.replace(compilation.call, edit_call(segment, {"mode": '"reduce-overhead"'}, column=column))
    title = 'Launch it as CUDA graphs (mode="reduce-overhead")'
    return Fix(_SLUG, title, Safety.UNSAFE, patch.edits())


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("torch.compile", ".compile(")))
