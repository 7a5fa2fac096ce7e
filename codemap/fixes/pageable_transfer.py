"""Batches copied from pageable memory: let the loader pin them."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import feeding, is_loader, loader_argument, loaders_at
from .outline import COMPREHENSIONS
from .resolve import Resolver, Value
from .scene import Frame, Scene, scene, searcher
from .settings import constants
from .transfers import moved_tensors

_SLUG = "pageable-transfer"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    moves = moved_tensors(view.here)
    loaders = _loaders(view, moves)
    if not loaders:
        pageable = [move for move in moves if "pin_memory" not in view.here.outline.segment(move)]
        several = [move for move in pageable if _is_repeated(view.here, move)]
        if several:
            return Confirmation(case.location, (_pinned_by_hand(view.here, several),))
        # A copy of something that no loader made: nothing to switch on, and pinning it by hand copies it once more.
        return Confirmation(case.location) if pageable else None
    unpinned = [loader for loader in loaders if _is_unpinned(view.resolver, loader)]
    if not unpinned:
        return None
    loader = unpinned[0]
    place = loader.outline.location(loader.node, case.location)
    related = (Related("the copy to the device", case.location),) if place.line != case.location.line else ()
    held = loader_argument(view.resolver, loader, "pin_memory")
    if held.is_unknown or (held.value is not None and not isinstance(held.value.node, ast.Constant)):
        return Confirmation(place, (), related, "pin_memory is set outside this call")
    return Confirmation(place, (_fix(loader, held.value),), related)


def _loaders(view: Scene, moves: list[ast.Call]) -> list[Value]:
    """The loaders whose batches the statement copies; else those in it or around it."""
    found: dict[ast.AST, Value] = {}
    for move in moves:
        assert isinstance(move.func, ast.Attribute)
        for loader in feeding(view.resolver, Value(view.here.outline, move.func.value)):
            found[loader.node] = loader
    return list(found.values()) or ([] if moves else _named_loaders(view))


def _is_repeated(frame: Frame, move: ast.Call) -> bool:
    """Whether a comprehension sends one tensor after the other: one is pinned while the one before is on its way."""
    for above in frame.outline.ancestors(move):
        if isinstance(above, COMPREHENSIONS):
            return True
        if isinstance(above, ast.stmt):
            break
    return False


def _pinned_by_hand(frame: Frame, moves: list[ast.Call]) -> Fix:
    file, patch = frame.outline, Patch(frame.outline)
    for move in moves:
        assert isinstance(move.func, ast.Attribute)
        start, end = file.span(move.func)[1] - len(move.func.attr), file.span(move)[1]
        patch.replace_span(start, end, "pin_memory()." + edit_call(file.text[start:end], {"non_blocking": "True"}))
    return Fix(_SLUG, "Pin each tensor and copy without waiting", Safety.UNSAFE, patch.edits())


def _named_loaders(view: Scene) -> list[Value]:
    own = [call for call in view.here.calls() if is_loader(Value(view.here.outline, call))]
    return [Value(view.here.outline, call) for call in own] or (loaders_at(view) if _is_loop(view.here) else [])


def _is_loop(frame: Frame) -> bool:
    return any(isinstance(statement, ast.For | ast.AsyncFor) for statement in frame.statements)


def _is_unpinned(resolver: Resolver, loader: Value) -> bool:
    held = loader_argument(resolver, loader, "pin_memory")
    if held.value is None:
        return True
    literals = [one.node.value for one in constants(resolver, held.value) if isinstance(one.node, ast.Constant)]
    return bool(literals) and not any(literals)


def _fix(loader: Value, held: Value | None) -> Fix:
    assert isinstance(loader.node, ast.Call)
    patch = Patch(loader.outline)
    if held is not None:
        patch.replace(held.node, "True")
    else:
        column = patch.outline.position(patch.outline.span(loader.node)[0])[1] - 1
        text = edit_call(patch.outline.segment(loader.node), {"pin_memory": "True"}, column=column)
        patch.replace(loader.node, text)
    return Fix(_SLUG, "Pin the loader's batches (pin_memory=True)", Safety.SAFE, patch.edits())


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("DataLoader",)),
    cure=Cure(re.compile(r"\bpin_memory\s*=\s*True"), is_elsewhere=True),
)
