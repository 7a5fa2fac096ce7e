"""A norm, an activation or a softmax written out: the library's own, where it computes the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .expressions import in_brackets
from .formulas import Formula, Layout, Match, recognise
from .imports import name_for
from .outline import Outline, find
from .resolve import Value
from .scene import Scene, scene, searcher
from .straight import Block
from .versions import is_older

_SLUG = "handwritten-norm-or-activation"
_REACH = 12
"""Statements behind the place among which the one that ends the computation is looked for."""


@dataclass(frozen=True, slots=True)
class _Found:
    """An expression that computes a formula, in the statement that ends the computation."""

    block: Block
    statement: ast.stmt
    node: ast.expr
    match: Match
    dropped: list[ast.stmt]
    """Statements that serve it alone."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    # `x * (relu6(x + 3) / 6)` holds a Hardsigmoid: what takes in more of the statements is what was meant.
    written = list(_written_out(view))
    found = max(written, key=lambda one: len(one.match.through), default=None)
    if found is None:
        return None
    together = [found, *(one for one in written if one.statement is found.statement and _stands_beside(one, found))]
    file = view.here.outline
    place = file.location(found.dropped[0] if found.dropped else _shown(file, found), case.location)
    if is_older(case.device.torch_version, found.match.formula.since):
        return Confirmation(place)
    return Confirmation(place, (_fix(view, together),))


def _shown(file: Outline, found: _Found) -> ast.expr | ast.stmt:
    """The statement, or the lambda alone: a table of activations has one in each line."""
    return next((above for above in file.ancestors(found.node) if isinstance(above, ast.Lambda)), found.statement)


def _written_out(view: Scene) -> Iterator[_Found]:
    """Expressions at the place, or that the place's statements lead to, that compute a known formula."""
    file = view.here.outline
    for here in view.here.statements:
        block = Block(file, file.block(here))
        at = block.statements.index(here)
        for statement in block.statements[at : at + _REACH]:
            value = getattr(statement, "value", None)
            if not isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign) or not isinstance(value, ast.expr):
                continue
            for node in _parts(value):
                match = recognise(view.resolver, Value(file, node), block)
                if match is None:
                    continue
                dropped = block.serving(statement, node, match.through)
                if (here is statement or here in dropped) and _are_visible(block, statement, match, dropped):
                    yield _Found(block, statement, node, match, dropped)


def _are_visible(block: Block, statement: ast.stmt, match: Match, dropped: list[ast.stmt]) -> bool:
    """Whether the operands' names mean the same in the statement once others are gone."""
    at = block.statements.index(statement)
    return all(block.version_at(text, at, dropped) == version for text, version in match.leaves if text.isidentifier())


def _parts(value: ast.expr) -> list[ast.expr]:
    """The operations in an expression, outermost first."""
    return [node for node in find(value, ast.expr) if isinstance(node, ast.BinOp | ast.Call)]


def _stands_beside(one: _Found, other: _Found) -> bool:
    """Whether two expressions of a statement have no part in common: `a(x) if inplace else b(x)`."""
    nodes = {id(node) for node in ast.walk(other.node)}
    return not one.dropped and id(one.node) not in nodes and not any(node is other.node for node in ast.walk(one.node))


def _fix(view: Scene, together: list[_Found]) -> Fix:
    file = view.here.outline
    patch = Patch(file)
    for found in together:
        patch.replace(found.node, _call(patch, file, found.match))
    if together[0].dropped:
        patch.delete(together[0].dropped)
    matches = [found.match for found in together]
    is_safe = all(one.is_pure and one.formula.is_dense and one.layout is not Layout.ASSUMED for one in matches)
    title = f"Use {matches[0].formula.function.removeprefix('torch.nn.functional.')}"
    return Fix(_SLUG, title, Safety.SAFE if is_safe else Safety.UNSAFE, patch.edits())


def _call(patch: Patch, file: Outline, match: Match) -> str:
    """The call of the library's function, with the names of the program."""
    formula: Formula = match.formula
    x = file.segment(match.tensor)
    held = in_brackets(file, match.tensor)
    weight, bias = (_parameter(file, match, one) for one in (match.weight, match.bias))
    arguments = [x]
    if formula.is_norm:
        over_channels = formula.axis == 1
        size = f"{held}.shape[1:2]" if over_channels else f"{held}.shape[-1:]"
        arguments = [f"{held}.permute(0, 2, 3, 1)" if over_channels else x, size]
        if weight is not None or bias is not None:
            arguments.append(weight or "None")
        if bias is not None:
            arguments.append(bias)
        arguments.append(f"eps={file.segment(match.epsilon)}" if match.epsilon is not None else "eps=0.0")
    elif formula.axis is not None:
        arguments.append(f"dim={formula.axis}")
    if formula.option:
        arguments.append(formula.option)
    call = f"{name_for(patch, formula.function)}({', '.join(arguments)})"
    return f"{call}.permute(0, 3, 1, 2)" if formula.is_norm and formula.axis == 1 else call


def _parameter(file: Outline, match: Match, parameter: ast.expr | None) -> str | None:
    """The text of a weight or bias as a vector."""
    if parameter is None:
        return None
    return file.segment(parameter) + (".flatten()" if match.layout is Layout.IMAGE else "")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("erf(", "tanh(", "sigmoid(", "rsqrt(", "sqrt(", ".exp(", "torch.exp(", ".mean(", "relu6(")),
    required=True,
)
