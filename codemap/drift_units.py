"""The statements of a file as an edit leaves or changes them: by what they say, not by how they are laid out."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .nodes import children
from .source import SourceFile
from .statements import first_line, header_end

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MODULE = "<module>"


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A statement; of one that holds a block, the header."""

    node: ast.stmt
    scope: str
    """The qualified name of the function or class whose statement it is; "<module>" outside all."""
    text: str
    """The same for every layout, choice of quotes and comments."""
    words: frozenset[str]
    """Names, attributes, keywords and constants."""
    calls: tuple[str, ...]
    """Bare names of what is called, sorted."""
    operators: tuple[str, ...]
    """Operators, sorted."""
    targets: tuple[str, ...]
    """What is assigned to, as written."""
    value: str
    """What is computed, without what it is assigned to; "" for a statement of another kind."""
    defines: str = ""
    """The qualified name of the function or class that the statement defines."""

    @property
    def kind(self) -> type[ast.stmt]:
        """Its type; all simple statements that compute something count as one."""
        simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
        return ast.Expr if isinstance(self.node, simple) else type(self.node)


class Units:
    """The statements of one file in order of line."""

    def __init__(self, file: SourceFile) -> None:
        self.all: tuple[Unit, ...] = tuple(_units(file))
        self.scopes: dict[str, list[Unit]] = {MODULE: []}
        self.frequency: Counter[str] = Counter()
        self.texts: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        for unit in self.all:
            self.scopes.setdefault(unit.scope, []).append(unit)
            self.frequency.update(unit.words)
            self.texts[unit.text] += 1
            self.values[unit.value] += 1
            if unit.defines:
                self.scopes.setdefault(unit.defines, [])

    def at(self, line: int, column: int = 0) -> Unit | None:
        """The innermost statement whose own lines (a block's header only) include `line`; of several on one line the
        last that begins at or before `column` (from 1, 0 for the first)."""
        holding = [u for u in self.all if first_line(u.node) <= line <= header_end(u.node)[0]]
        before = [u for u in holding if (u.node.lineno, u.node.col_offset) <= (line, max(column - 1, 0))]
        if before:
            return max(before, key=lambda unit: (unit.node.lineno, unit.node.col_offset))
        return min(holding, key=lambda unit: (unit.node.lineno, unit.node.col_offset), default=None)


def units_of(file: SourceFile) -> Units:
    """The statements of a file, worked out once."""
    known = file.derived.get(Units)
    if known is None:
        known = file.derived[Units] = Units(file)
    return known


def _units(file: SourceFile) -> Iterator[Unit]:
    found: list[Unit] = []
    pending: list[tuple[ast.AST, str]] = [] if file.tree is None else [(file.tree, "")]
    while pending:
        node, scope = pending.pop()
        for child in children(node):
            if isinstance(child, ast.expr):
                continue
            inner = scope
            if isinstance(child, ast.stmt):
                defines = f"{scope}.{child.name}".lstrip(".") if isinstance(child, _SCOPES) else ""
                found.append(_unit(child, scope or MODULE, defines))
                inner = defines or scope
            pending.append((child, inner))
    found.sort(key=lambda unit: (unit.node.lineno, unit.node.col_offset))
    return iter(found)


def _unit(node: ast.stmt, scope: str, defines: str) -> Unit:
    words: set[str] = set()
    calls: list[str] = []
    operators: list[str] = []
    parts = tuple(_header(node))
    pending: list[ast.AST] = list(parts)
    while pending:
        one = pending.pop()
        pending.extend(children(one))
        if isinstance(one, ast.Name):
            words.add(one.id)
        elif isinstance(one, ast.Attribute):
            words.add(one.attr)
        elif isinstance(one, ast.keyword) and one.arg:
            words.add(one.arg + "=")
        elif isinstance(one, ast.Constant):
            words.add(repr(one.value)[:80])
        elif isinstance(one, ast.Call):
            calls.append(_called(one.func))
        elif isinstance(one, (ast.BinOp, ast.UnaryOp, ast.BoolOp)):
            operators.append(type(one.op).__name__)
        elif isinstance(one, ast.Compare):
            operators += [type(op).__name__ for op in one.ops]
        elif isinstance(one, ast.alias):
            words.add(one.name)
    if isinstance(node, ast.AugAssign):
        operators.append(type(node.op).__name__)
    text = f"{type(node).__name__} " + " ; ".join(_written(part) for part in parts)
    if isinstance(node, _SCOPES):
        text = f"{type(node).__name__} {node.name} {text}"
    elif isinstance(node, ast.AugAssign):
        text += f" {type(node.op).__name__}"
    elif isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
        text = _written(node)
    value = getattr(node, "value", None)
    return Unit(
        node,
        scope,
        text,
        frozenset(words),
        tuple(sorted(calls)),
        tuple(sorted(operators)),
        _targets(node),
        _written(value) if isinstance(value, ast.expr) else "",
        defines,
    )


def _header(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement without the statements that it holds."""
    for child in children(node):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield child


def _targets(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.Assign):
        return tuple(_written(target) for target in node.targets)
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        return (_written(node.target),)
    return ()


def _written(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except ValueError:  # an f-string that this Python reads but cannot write
        return ast.dump(node)


def _called(function: ast.expr) -> str:
    while isinstance(function, ast.Call):
        function = function.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
