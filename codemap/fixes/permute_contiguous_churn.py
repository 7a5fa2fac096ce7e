"""`permute(...).contiguous()` there and back: drop pairs that cancel, else keep one layout in memory."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...analyzer.findings import Fix, Related, Safety
from .attention_parts import integer
from .base import Case, Confirmation, Fixer
from .bindings import walk_scope
from .edits import Patch
from .memory_format import convert_input, convert_model, is_converted
from .models import assigned_target, chain_end, model_call, only_model_call
from .outline import Outline, find, last_name
from .scene import Scene, scene, searcher

_SLUG = "permute-contiguous-churn"
_MOVES = ("movedim", "moveaxis")
_LAST, _SECOND = (0, 2, 3, 1), (0, 3, 1, 2)
_CHANNEL_MOVES = (_LAST, _SECOND)
_CHANNEL_MOVED: dict[tuple[int, ...], tuple[int, ...]] = {
    (1, -1): _LAST,
    (1, 3): _LAST,
    (-1, 1): _SECOND,
    (3, 1): _SECOND,
}
"""What moving one dimension of an image does."""


@dataclass(frozen=True, slots=True)
class Churn:
    """One `x.permute(...).contiguous()`; `order` is None for `transpose` and what is not spelt in numbers."""

    node: ast.Call
    """The `.contiguous()` call."""
    permute: ast.Call
    order: tuple[int, ...] | None

    @property
    def source(self) -> ast.expr:
        """What is permuted."""
        return _operand(self.permute)[0]


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    here = {found.node: found for call in view.here.calls() if (found := _churn(call)) is not None}
    if not here:
        return None
    pairs = _pairs(file, next(iter(here)))
    for first, second in pairs:
        if (first.node in here or second.node in here) and _cancels(file, first, second):
            return _dropped(view, first, second)
    for first, second in pairs:
        if (first.node in here or second.node in here) and first.node.lineno <= second.node.lineno:
            return _one_layout(view, first, second)
    return Confirmation(file.location(file.statement(next(iter(here))), case.location))


def _pairs(file: Outline, call: ast.Call) -> list[tuple[Churn, Churn]]:
    """All pairs in the call's function of which the second undoes the first's order, in the order of the text."""
    nodes = [node for node in walk_scope(file.function(call)) if isinstance(node, ast.Call)]
    found = [churn for node in nodes if (churn := _churn(node)) is not None]
    # By the end: in a chain of calls the outer one begins where the inner one does.
    found.sort(key=lambda one: (one.node.end_lineno or 0, one.node.end_col_offset or 0))
    return [(one, two) for one in found for two in found if one is not two and _inverse(one.order, two.order)]


def _churn(call: ast.Call) -> Churn | None:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "contiguous") or call.args or call.keywords:
        return None
    inner = call.func.value
    if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)):
        return None
    name, (_, args) = inner.func.attr, _operand(inner)
    if name not in ("permute", "transpose", *_MOVES):
        return None
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = args[0].elts
    numbers = tuple(number for arg in args if (number := integer(arg)) is not None)
    if name != "permute" and not len(numbers) == len(args) == 2:
        return None
    if name in _MOVES:
        return Churn(call, inner, _CHANNEL_MOVED.get(numbers))
    return Churn(call, inner, numbers if len(numbers) == len(args) and name == "permute" else None)


def _operand(call: ast.Call) -> tuple[ast.expr, list[ast.expr]]:
    """What a method, or the function of `torch`, rearranges, and how."""
    assert isinstance(call.func, ast.Attribute)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return (given[0], given[1:]) if last_name(call.func.value) == "torch" and given else (call.func.value, given)


def _inverse(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> bool:
    """Whether the second permutation undoes the first."""
    if first is None or second is None or sorted(first) != sorted(second) or sorted(first) != list(range(len(first))):
        return False
    return all(first[second[place]] == place for place in range(len(first)))


def _cancels(file: Outline, first: Churn, second: Churn) -> bool:
    """Whether the second takes exactly what the first gave, and nothing else does."""
    if not _inverse(first.order, second.order):
        return False
    if second.source is first.node:
        return True
    statement = file.statement(first.node)
    if not (isinstance(statement, ast.Assign) and statement.value is first.node and len(statement.targets) == 1):
        return False
    target = statement.targets[0]
    if (
        not isinstance(target, ast.Name)
        or last_name(second.source) != target.id
        or isinstance(second.source, ast.Attribute)
    ):
        return False
    block = file.block(statement)
    later = file.statement(second.node)
    if later not in block or block.index(later) <= block.index(statement):
        return False
    between = block[block.index(statement) + 1 : block.index(later)]
    source_names = {node.id for node in find(first.source, ast.Name)}
    for other in between:
        for node in find(other, ast.Name):
            if node.id == target.id or (node.id in source_names and isinstance(node.ctx, ast.Store)):
                return False
    reads = [
        node
        for node in find(file.function(statement), ast.Name)
        if node.id == target.id
        and isinstance(node.ctx, ast.Load)
        and node.lineno > statement.lineno
        and node is not second.source
    ]
    rebinds = isinstance(later, ast.Assign) and any(last_name(one) == target.id for one in later.targets)
    return rebinds or not reads


def _dropped(view: Scene, first: Churn, second: Churn) -> Confirmation:
    """The pair gives back what went in: `.contiguous()` of that alone is free when it is dense."""
    file, like = view.here.outline, view.case.location
    patch = Patch(file)
    start, end = file.span(second.node)
    source = file.segment(first.source)
    patch.replace_span(start, end, f"{source}.contiguous()")
    statement = file.statement(first.node)
    if second.source is not first.node:
        patch.delete([statement])
    place = file.location(statement, like)
    safety = Safety.UNSAFE if _written_in_place(file, second) else Safety.SAFE
    fix = Fix(_SLUG, "Drop the two permutes, which cancel", safety, patch.edits())
    return Confirmation(place, (fix,), _second_place(file, first, second, view))


def _written_in_place(file: Outline, churn: Churn) -> bool:
    """Whether the result may be written to, which would now reach the tensor that went in."""
    statement = file.statement(churn.node)
    targets = [last_name(target) for target in getattr(statement, "targets", [])]
    for node in walk_scope(file.function(statement)):
        match node:
            case ast.AugAssign(target=target) if last_name(target) in targets or _base(target) in targets:
                return True
            case ast.Assign(targets=[ast.Subscript() as target]) if _base(target) in targets:
                return True
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr.endswith("_") and _base(value) in targets:
                return True
            case _:
                pass
    return False


def _base(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _one_layout(view: Scene, first: Churn, second: Churn) -> Confirmation:
    """Both permutes as views, and channels_last in memory, so that the views are dense where they are used."""
    file, like = view.here.outline, view.case.location
    place = file.location(file.statement(first.node), like)
    related = _second_place(file, first, second, view)
    model = model_call(view) or only_model_call(view)
    if first.order in _CHANNEL_MOVES and model is None:
        reason = "the copies go only if the whole model runs in channels_last, and its construction was not found"
        return Confirmation(place, (), related, reason)
    patches = {file.path: Patch(file)}
    for churn in (first, second):
        patches[file.path].replace_span(file.span(churn.permute)[1], file.span(churn.node)[1], "")
    title = "Keep the permutes as views"
    if first.order in _CHANNEL_MOVES and model is not None:
        construction = model.constructions[0]
        home = construction.outline
        chain = chain_end(home, construction.node)
        if not is_converted(home, assigned_target(home, chain), chain):
            convert_model(patches.setdefault(home.path, Patch(home)), construction.node)
            convert_input(patches.setdefault(model.outline.path, Patch(model.outline)), model, view.resolver)
            title = "Keep one layout: the permutes as views, the model and its input in channels_last"
    edits = tuple(edit for patch in patches.values() for edit in patch.edits())
    return Confirmation(place, (Fix(_SLUG, title, Safety.UNSAFE, edits),), related)


def _second_place(file: Outline, first: Churn, second: Churn, view: Scene) -> tuple[Related, ...]:
    place = file.location(file.statement(second.node), view.case.location)
    return () if second.node.lineno == first.node.lineno else (Related("and back", place),)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (".contiguous()",)))
