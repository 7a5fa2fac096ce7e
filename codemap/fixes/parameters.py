"""Loops over a model's parameters: what they run over, what they skip, and which tensor of each they look at."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bindings import FUNCTIONS
from .edits import Patch
from .outline import Outline, find, last_name

_OVER = ("parameters", "named_parameters", "buffers", "named_buffers")
_WIDE = 110
"""A line longer than this is broken."""
_VIEWS = ("data", "detach")
"""Attributes and methods that give the same numbers without the graph."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A `for` (a statement, or the single clause of a comprehension) over parameters."""

    file: Outline
    target: ast.expr
    iterable: ast.expr
    conditions: tuple[str, ...] = ()
    """What must hold of a parameter for it to be looked at, as text."""

    def gathered(self, tensor: str) -> str:
        """The list of one tensor of each parameter, as text; parameters without a gradient are left out of gradients.

        `tensor` is written with the loop's own names.
        """
        conditions = list(self.conditions)
        if tensor.endswith(".grad") and not any(f"{tensor} is not None" in one for one in conditions):
            conditions.append(f"{tensor} is not None")
        clause = f"for {self.file.segment(self.target)} in {self.file.segment(self.iterable)}"
        return f"[{tensor} {clause}{''.join(f' if {one}' for one in conditions)}]"

    def gathered_lines(self, name: str, tensor: str, column: int) -> list[str]:
        """The statement that gives a name to what `gathered` says; over several lines where one would be too long."""
        line = f"{name} = {self.gathered(tensor)}"
        if column + len(line) <= _WIDE:
            return [line]
        head, _, rest = self.gathered(tensor)[1:-1].partition(" for ")
        clause, *conditions = f"for {rest}".split(" if ", 1)
        return [f"{name} = [", *(f"    {part}" for part in (head, clause, *(f"if {one}" for one in conditions))), "]"]

    def is_repeatable(self) -> bool:
        """Whether the same text run over again gives the same parameters; a generator held in a name does not."""
        node = self.iterable
        if isinstance(node, ast.Call):
            return not isinstance(node.func, ast.Name) or node.func.id in ("list", "tuple", "filter", "chain")
        if not isinstance(node, ast.Name):
            return True
        values = [binding.value for binding in self.file.lookup(node)]
        return bool(values) and all(
            isinstance(value, ast.List | ast.Tuple | ast.ListComp) or _is_list(value) for value in values
        )


def _is_list(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) in ("list", "tuple", "sorted")


def loop_walk(file: Outline, statement: ast.stmt) -> tuple[ast.For, Walk] | None:
    """The innermost loop over parameters that is, or holds, a statement of the same function."""
    for node in (statement, *file.ancestors(statement)):
        if isinstance(node, FUNCTIONS):
            return None
        if isinstance(node, ast.For) and _is_over_parameters(file, node.target, node.iter, node.body):
            return node, Walk(file, node.target, node.iter)
    return None


def clause_walk(file: Outline, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Walk | None:
    """The walk of a comprehension with one clause, if it runs over parameters."""
    if len(node.generators) != 1:
        return None
    clause = node.generators[0]
    if not _is_over_parameters(file, clause.target, clause.iter, [node.elt]):
        return None
    return Walk(file, clause.target, clause.iter, tuple(file.segment(one) for one in clause.ifs))


def _is_over_parameters(
    file: Outline, target: ast.expr, iterable: ast.expr, body: list[ast.stmt] | list[ast.expr]
) -> bool:
    """Whether a loop goes over parameters or gradients: what it runs over says so, or what its body reads."""
    if any(last_name(call.func) in _OVER for call in find(iterable, ast.Call)) or _is_list_of_gradients(file, iterable):
        return True
    names = {name.id for name in find(target, ast.Name)}
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad" and last_name(node.value) in names
        for part in body
        for node in ast.walk(part)
    )


def _is_list_of_gradients(file: Outline, iterable: ast.expr) -> bool:
    """A name of `[p.grad for p in ...]`."""
    values = [binding.value for binding in file.lookup(iterable)] if isinstance(iterable, ast.Name) else []
    return bool(values) and all(
        isinstance(value, ast.ListComp) and any(node.attr == "grad" for node in find(value.elt, ast.Attribute))
        for value in values
    )


def tensor_of(node: ast.expr, walk: Walk, aliases: Mapping[str, ast.expr]) -> str | None:
    """The parameter's tensor that an expression reads, as text of the loop: `p.grad` of `p.grad.data.detach()`.

    `aliases` are names that the loop's body gives to expressions. None for anything else.
    """
    if isinstance(node, ast.Name) and node.id in aliases:
        return tensor_of(aliases[node.id], walk, aliases)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        return tensor_of(node.func.value, walk, aliases) if node.func.attr in (*_VIEWS, "float") else None
    if isinstance(node, ast.Attribute) and node.attr in ("data", "grad"):
        inner = tensor_of(node.value, walk, aliases)
        return inner if node.attr == "data" or inner is None else f"{inner}.grad"
    if isinstance(node, ast.Name) and node.id in {name.id for name in find(walk.target, ast.Name)}:
        return node.id
    return None


def unused_name(file: Outline, near: ast.AST, names: Sequence[str]) -> str:
    """The first of `names` that nothing in the function round a node is called; the last if all are taken."""
    taken = {name.id for name in find(file.function(near), ast.Name)}
    taken |= {argument.arg for argument in find(file.function(near), ast.arg)}
    return next((name for name in names if name not in taken), names[-1])


def replace_lines(patch: Patch, loop: ast.For, lines: Sequence[str], without: Sequence[ast.stmt] | None) -> None:
    """Put `lines` in the place of a loop, whose statements have lines of their own.

    With `without` the loop itself follows them, one level deeper and less those statements; with None it goes.
    """
    file = patch.outline
    first, last = loop.lineno, loop.end_lineno or loop.lineno
    indent = file.indentation(loop)
    new = [indent + line for line in lines]
    if without is not None:
        step = "\t" if indent.startswith("\t") else "    "
        gone = {number for one in without for number in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
        kept = [file.file.lines[number - 1] for number in range(first, last + 1) if number not in gone]
        new += [step + line if line.strip() else line for line in kept]
    is_last = last >= len(file.line_starts)
    end = len(file.text) if is_last else file.line_starts[last]
    patch.replace_span(file.line_starts[first - 1], end, "\n".join(new) + ("" if is_last else "\n"))
