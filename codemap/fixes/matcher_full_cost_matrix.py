"""A matcher's cost matrix of the whole batch: only each image's own block is copied to the host, all in one copy."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .bindings import FUNCTIONS
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .scene import scene, searcher

_SLUG = "matcher-full-cost-matrix"
_SOLVERS = ("linear_sum_assignment", "lapjv")


@dataclass(frozen=True, slots=True)
class _Solving:
    """`[solve(c[i]) for i, c in enumerate(costs.split(sizes, -1))]`."""

    comprehension: ast.ListComp
    generator: ast.comprehension
    index: str
    block: str
    split: ast.Call
    costs: ast.expr
    """What is split."""
    reads: list[ast.Subscript]
    """Each `c[i]`."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    for statement in view.here.statements:
        function = statement if isinstance(statement, FUNCTIONS) else file.function(statement)
        for comprehension in find(function, ast.ListComp):
            solving = _solving(comprehension)
            if solving is None:
                continue
            place = file.location(file.statement(comprehension), case.location)
            fix = None if case.device.is_cpu else _own_blocks(file, solving)
            message = "cost each image's predictions against its own targets alone"
            return Confirmation(place, (fix,) if fix else (), message="" if fix else message)
    return None


def _solving(comprehension: ast.ListComp) -> _Solving | None:
    """The parts of a comprehension that solves the diagonal blocks of a split matrix."""
    generator = comprehension.generators[0]
    match generator:
        case ast.comprehension(
            target=ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=block)]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[ast.Call(func=ast.Attribute(attr="split")) as split]),
            ifs=[],
        ):
            pass
        case _:
            return None
    assert isinstance(split.func, ast.Attribute)
    solves = [call for call in find(comprehension.elt, ast.Call) if last_name(call.func) in _SOLVERS]
    reads = [node for node in find(comprehension.elt, ast.Subscript) if _is_own(node, index, block)]
    names = [node.id for node in find(comprehension.elt, ast.Name) if node.id in (index, block)]
    if len(comprehension.generators) > 1 or not solves or not reads or len(names) != 2 * len(reads):
        return None
    return _Solving(comprehension, generator, index, block, split, split.func.value, reads)


def _is_own(node: ast.Subscript, index: str, block: str) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=held), slice=ast.Name(id=at)):
            return (held, at) == (block, index)
        case _:
            return False


def _own_blocks(file: Outline, solving: _Solving) -> Fix | None:
    """The blocks side by side in one matrix, that one copied and split again."""
    copied = _copied(file, solving)
    if copied is None or not _is_by_last_dimension(solving.split):
        return None
    assert isinstance(copied.func, ast.Attribute)
    patch = Patch(file)
    cat = name_for(patch, "torch.cat")
    on_device = copied.func.value
    if copied is solving.costs:
        costs = file.segment(on_device)
    else:
        costs = file.segment(solving.costs)
        patch.replace_span(file.span(on_device)[1], file.span(copied)[1], "")
    split = file.text[file.span(solving.costs)[1] : file.span(solving.split)[1]]
    index, block = solving.index, solving.block
    blocks = f"{cat}([{block}[{index}] for {index}, {block} in enumerate({costs}{split})], -1)"
    patch.replace(solving.generator.iter, f"{blocks}.cpu(){split}")
    patch.replace(solving.generator.target, block)
    for read in solving.reads:
        patch.replace(read, block)
    # Every value is copied as it was; only those that no assignment reads are left behind.
    return Fix(_SLUG, "Copy each image's own block only, all in one copy", Safety.SAFE, patch.edits())


def _is_by_last_dimension(split: ast.Call) -> bool:
    """Whether it is `split(sizes, -1)` or `split(sizes, dim=-1)`."""
    given = [*split.args[1:], *(keyword.value for keyword in split.keywords if keyword.arg == "dim")]
    return len(split.args) >= 1 and len(given) == 1 and ast.unparse(given[0]) in ("-1", "2")


def _copied(file: Outline, solving: _Solving) -> ast.Call | None:
    """The `.cpu()` that the matrix goes through, at the split or where its name was set; None if it is read besides."""
    node = solving.costs
    if isinstance(node, ast.Name):
        statement = file.statement(solving.comprehension)
        block = file.block(statement)
        before = [one for one in block[: block.index(statement)] if _sets(one, node.id)]
        reads = [one for one in find(file.function(statement), ast.Name) if one.id == node.id and one is not node]
        if not before or not isinstance(before[-1], ast.Assign):
            return None
        if any(isinstance(one.ctx, ast.Load) and one.lineno > before[-1].lineno for one in reads):
            return None
        node = before[-1].value
    match node:
        case ast.Call(func=ast.Attribute(attr="cpu"), args=[], keywords=[]):
            return node
        case _:
            return None


def _sets(statement: ast.stmt, name: str) -> bool:
    return any(node.id == name and isinstance(node.ctx, ast.Store) for node in find(statement, ast.Name))


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("linear_sum_assignment(", "lapjv(")),
    required=True,
    cure=Cure(re.compile(r"cat\(\[c\[i\] for i, c in enumerate\(")),
)
