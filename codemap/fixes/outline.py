"""What one file says, as fixers ask it: which node holds a line, what a name is bound to, where a node's text lies."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import TypeVar

from ...analyzer.findings import How, Location
from ..nodes import parents_of
from ..source import SourceFile
from .bindings import FUNCTIONS, Binding, bindings_of

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
LOOPS = (ast.For, ast.AsyncFor, ast.While)
Giving = ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.Call
"""What gives an object's attribute a value."""
_REGISTERING = ("register_buffer", "register_parameter")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Node = TypeVar("Node", bound=ast.AST)


class Outline:
    """A parsed file with its parents, names and offsets. Made by `outline`, once for each file."""

    def __init__(self, file: SourceFile, tree: ast.Module) -> None:
        self.file = file
        self.path = file.path
        self.text = file.text
        self.tree = tree
        self._bindings: dict[ast.AST, dict[str, list[Binding]]] = {}
        self._attributes: dict[ast.AST, dict[str, list[Giving]]] = {}

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return parents_of(self.tree)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes below the tree in the order of `ast.walk`, without contexts and operators."""
        return list(self.parents)

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of each line's first character."""
        starts, offset = [], 0
        for line in self.file.lines:
            starts.append(offset)
            offset += len(line)
            offset += 2 if self.text.startswith("\r\n", offset) else 1
        return starts

    @cached_property
    def newline(self) -> str:
        """How this file ends its lines."""
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Dotted name that each imported name stands for: `F` -> `torch.nn.functional`. Relative ones keep dots."""
        found: dict[str, str] = {}
        for node in self.statements:
            if isinstance(node, ast.Import):
                for item in node.names:
                    found[item.asname or item.name.partition(".")[0]] = (
                        item.name if item.asname else item.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                for item in node.names:
                    found[item.asname or item.name] = f"{base}.{item.name}" if base.strip(".") else base + item.name
        return found

    # Places

    def offset(self, line: int, utf8_offset: int) -> int:
        """Offset in the text of an `ast` position."""
        return self.line_starts[line - 1] + self.file.column(line, utf8_offset) - 1

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Offsets of a node's first and last character, the end exclusive; decorators left out."""
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """A node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def indentation(self, statement: ast.stmt) -> str:
        """The white space before a statement; "" when it shares its line with another."""
        start = self.line_starts[statement.lineno - 1]
        before = self.text[start : self.span(statement)[0]]
        return before if not before.strip() else ""

    def location(self, node: ast.expr | ast.stmt, like: Location | None = None) -> Location:
        """The place of a node; how it was found and how sure is taken from `like`. A compound statement's place
        ends with its header."""
        start, end = self.span(node)
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body:
            header = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            end = max((self.span(child)[1] for child in header if child.lineno <= body[0].lineno), default=start + 1)
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        how, confidence = (like.how, like.confidence) if like else (How.OPERATOR, 1.0)
        return Location(self.path, line, column, end_line, end_column, self.qualname(node), how, confidence)

    def qualname(self, node: ast.AST) -> str:
        """Qualified name of the function that holds a node, without `<locals>`; "<module>" at top level."""
        names = [scope.name for scope in self.scopes(node) if isinstance(scope, (*FUNCTIONS, ast.ClassDef))]
        return ".".join(reversed(names)) or "<module>"

    # Structure

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Enclosing nodes, innermost first."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def scopes(self, node: ast.AST) -> Iterator[Scope]:
        """Enclosing functions, classes and the module, innermost first; a node's own body does not enclose it."""
        for above in self.ancestors(node):
            if isinstance(above, Scope):
                yield above

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that is or holds a node."""
        return next(above for above in chain([node], self.ancestors(node)) if isinstance(above, ast.stmt))

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
        """The innermost `def` that encloses a node, else the module."""
        return next(scope for scope in self.scopes(node) if isinstance(scope, (*FUNCTIONS, ast.Module)))

    def enclosing_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method a node lies in."""
        return next((scope for scope in self.scopes(node) if isinstance(scope, ast.ClassDef)), None)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement stands in."""
        parent = self.parents[statement]
        for field in ("body", "orelse", "finalbody", "handlers"):
            held = getattr(parent, field, None)
            if isinstance(held, list) and statement in held:
                return held
        return [statement]

    def statements_at(self, place: Location) -> list[ast.stmt]:
        """The statements a place names: the innermost one that holds its first line, and those that begin on its
        further lines. A line inside a multi-line statement names that statement."""
        last_line = max(place.line, place.end_line)
        start = bisect_left(self._statement_lines, place.line)
        begun = self.statements[start : bisect_right(self._statement_lines, last_line)]
        if begun and begun[0].lineno == place.line:
            return begun
        # The nearest statement above, or one that encloses it, may run on to this line.
        above = self.statements[start - 1] if start else None
        chain = (
            [] if above is None else [above, *(node for node in self.ancestors(above) if isinstance(node, ast.stmt))]
        )
        holding = next((node for node in chain if place.line <= _header_end(node)), None)
        return ([] if holding is None else [holding]) + begun

    @cached_property
    def _statement_lines(self) -> list[int]:
        return [node.lineno for node in self.statements]

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """All statements in the order of the text."""
        found = [node for node in self.nodes if isinstance(node, ast.stmt)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def calls(self, last_name: str) -> list[ast.Call]:
        """Calls of a function or method by the last part of its name, in the order of the text."""
        return self._calls_by_name.get(last_name, [])

    def calls_in(self, function: ast.AST) -> list[ast.Call]:
        """Calls in one function's (or the module's) own code, inner functions left out, in the order of the text."""
        return self._calls_by_function.get(function, [])

    @cached_property
    def _calls_by_function(self) -> dict[ast.AST, list[ast.Call]]:
        found: dict[ast.AST, list[ast.Call]] = {}
        for calls in self._calls_by_name.values():
            for call in calls:
                found.setdefault(self.function(call), []).append(call)
        for calls in found.values():
            calls.sort(key=lambda call: (call.lineno, call.col_offset))
        return found

    @cached_property
    def _calls_by_name(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Call):
                found.setdefault(last_name(node.func), []).append(node)
        for calls in found.values():
            calls.sort(key=lambda call: (call.lineno, call.col_offset))
        return found

    def attribute_statements(self, owner: ast.AST, name: str) -> list[Giving]:
        """What gives `self.name` (or a name of the class's own) a value under a class: assignments, the methods of that
        name, calls that register a buffer or parameter, or append to it."""
        if owner not in self._attributes:
            table: dict[str, list[Giving]] = {}
            for node in ast.walk(owner):
                if isinstance(node, Giving):
                    for given in dict.fromkeys(_given_names(node)):
                        table.setdefault(given, []).append(node)
            self._attributes[owner] = table
        return self._attributes[owner].get(name, [])

    # Names

    def dotted(self, node: ast.AST) -> str:
        """The full dotted name an expression reads, through imports: `F.relu` -> `torch.nn.functional.relu`; ""
        if it is no plain chain of names."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.aliases.get(node.id, node.id))
        return ".".join(reversed(parts))

    def bindings(self, scope: ast.AST, name: str) -> list[Binding]:
        """What a name is bound to in the body of one scope (inner functions left out), in the order of the text."""
        if scope not in self._bindings:
            table: dict[str, list[Binding]] = {}
            for binding in bindings_of(scope):
                table.setdefault(binding.name, []).append(binding)
            self._bindings[scope] = table
        return self._bindings[scope].get(name, [])

    def lookup(self, name: ast.Name) -> list[Binding]:
        """What a name that is read may be bound to, by the innermost scope that binds it."""
        for depth, scope in enumerate(self.scopes(name)):
            if isinstance(scope, ast.ClassDef) and depth:
                continue
            if found := self.bindings(scope, name.id):
                return found
        return []


def outline(file: SourceFile | None) -> Outline | None:
    """The outline of a file; None for no file or one with a syntax error."""
    if file is None or file.tree is None:
        return None
    if Outline not in file.derived:
        file.derived[Outline] = Outline(file, file.tree)
    return file.derived[Outline]


def _given_names(node: Giving) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield node.name
        return
    if isinstance(node, ast.Call):
        match node:
            case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str(name)), _, *_]) if (
                method in _REGISTERING
            ):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=name), attr="append"), args=[_]
            ):
                yield name
            case _:
                pass
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        parts = ast.walk(target) if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from (last_name(part) for part in parts if isinstance(part, ast.Name | ast.Attribute))


def last_name(node: ast.AST) -> str:
    """The last part of a name: `loss` of `self.loss`; "" for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def find(root: ast.AST, kind: type[Node]) -> list[Node]:
    """All nodes of one kind under `root`, itself included."""
    return [node for node in ast.walk(root) if isinstance(node, kind)]


def header(statement: ast.stmt) -> list[ast.expr]:
    """The expressions that a statement itself evaluates: all of a simple one, the header of a compound one."""
    return [
        node
        for child in ast.iter_child_nodes(statement)
        for node in ([child] if isinstance(child, ast.expr) else _item_exprs(child))
    ]


def _item_exprs(child: ast.AST) -> list[ast.expr]:
    if isinstance(child, ast.withitem):
        return [child.context_expr]
    return [child.value] if isinstance(child, ast.keyword) else []


def _header_end(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return max(statement.lineno, body[0].lineno - 1)
    return statement.end_lineno or statement.lineno
