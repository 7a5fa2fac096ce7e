"""`torch.cuda.empty_cache()` and `gc.collect()` in a loop: take them out."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .bindings import FUNCTIONS
from .edits import Patch
from .outline import LOOPS, Outline
from .scene import Frame, Scene, scene, searcher

_SLUG = "cache-emptied-in-loop"
_CALLS = frozenset(
    {"torch.cuda.empty_cache", "torch.cuda.memory.empty_cache", "torch.mps.empty_cache", "torch.xpu.empty_cache"}
    | {"torch.accelerator.memory.empty_cache", "torch.accelerator.empty_cache", "gc.collect"}
)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames:
        if gone := _calls_at(frame):
            return _taken_out(view, frame.outline, gone)
    return None


def _confirm_in_loop(case: Case) -> Confirmation | None:
    """The same, in functions that loop themselves: for traces that name no line."""
    view = scene(case)
    if view is None or not any(
        isinstance(above, LOOPS) for one in view.here.statements for above in view.here.outline.ancestors(one)
    ):
        return None
    return _confirm(case)


def _calls_at(frame: Frame) -> list[ast.stmt]:
    """The statements beside the place that do nothing but empty the cache or collect."""
    file = frame.outline
    here = [statement for statement in frame.statements if _is_call(file, statement)]
    if not here or _is_after_failure(file, here[0]):
        return []
    block = file.block(here[0])
    return [statement for statement in block if _is_call(file, statement)]


def _is_after_failure(file: Outline, statement: ast.stmt) -> bool:
    """Whether it runs only once something has failed: memory given back before a second try is needed there."""
    below: ast.AST = statement
    for above in file.ancestors(statement):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, ast.ExceptHandler) or (isinstance(above, ast.Try) and below in above.finalbody):
            return True
        below = above
    return False


def _is_call(file: Outline, statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and file.dotted(statement.value.func) in _CALLS
    )


def _taken_out(view: Scene, file: Outline, gone: list[ast.stmt]) -> Confirmation:
    place = file.location(gone[0], view.case.location)
    others = tuple(Related("and here", file.location(other, view.case.location)) for other in gone[1:])
    block, holder = file.block(gone[0]), file.parents[gone[0]]
    if len(gone) < len(block):
        removed: list[ast.stmt] = gone
    elif isinstance(holder, ast.If) and not holder.orelse:
        removed = [holder]
    else:
        name = holder.name if isinstance(holder, FUNCTIONS) else "the block"
        return Confirmation(place, (), others, f"{name} does nothing else; leave out what calls it")
    if not _has_lines_alone(file, removed):
        return Confirmation(place, (), others, "it shares its line with other code")
    patch = Patch(file)
    patch.delete(removed)
    names = sorted({file.segment(one) for one in gone})
    return Confirmation(place, (Fix(_SLUG, f"Take out {' and '.join(names)}", Safety.SAFE, patch.edits()),), others)


def _has_lines_alone(file: Outline, removed: list[ast.stmt]) -> bool:
    """Whether nothing else stands on the statements' lines."""
    lines = {line for one in removed for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    kept = [one for one in file.block(removed[0]) if one not in removed]
    holder = file.parents[removed[0]]
    return (
        not any(one.lineno in lines or one.end_lineno in lines for one in kept)
        and getattr(holder, "lineno", 0) not in lines
    )


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm_in_loop, ("empty_cache", "gc.collect")), required=True)
