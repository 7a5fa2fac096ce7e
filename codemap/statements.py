"""Where a statement stands in its file."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..analyzer.findings import Grain, How, Location
from .source import SourceFile


@dataclass(frozen=True, slots=True)
class Inside:
    """The library's code that an event comes from, below a statement of the program."""

    what: str
    """In words: file, line and function of the library, or the class of its model."""
    built: Location | None
    """Where the program builds that model; None if that is not plain."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event comes from."""

    location: Location
    """The statement."""
    line: int
    """The line of the very call or operator, which may stand further down in a statement of several lines."""
    callers: tuple[Location, ...] = ()
    """The call statements above it in the workspace, innermost first."""
    note: str = ""
    """What a reader has to know: that another line or file fits as well, that the file was edited since."""
    inside: Inside | None = None
    """Set where the time is spent in a model of a library."""


def header_end(node: ast.AST) -> tuple[int, int]:
    """Line and UTF-8 offset of a statement's end; of its header's, for one that holds a block."""
    last = node if isinstance(node, (ast.stmt, ast.expr)) else None
    if isinstance(node, (ast.If, ast.While)):
        last = node.test
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        last = node.iter
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        last = node.items[-1].optional_vars or node.items[-1].context_expr
    elif isinstance(node, ast.Match):
        last = node.subject
    elif isinstance(node, ast.ExceptHandler):
        last = node.type
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return _word_end(node, "async def " if isinstance(node, ast.AsyncFunctionDef) else "def ", node.name)
    elif isinstance(node, ast.ClassDef):
        return _word_end(node, "class ", node.name)
    if last is None:
        return node.lineno, node.col_offset + len("except")  # pyright: ignore[reportAttributeAccessIssue]
    return last.end_lineno or last.lineno, last.end_col_offset or last.col_offset


def location_of(
    file: SourceFile,
    node: ast.AST,
    qualname: str,
    how: How = How.STACK,
    confidence: float = 1.0,
    grain: Grain = Grain.LINE,
) -> Location:
    """The location of a statement (its header) or expression."""
    line, offset = node.lineno, node.col_offset  # pyright: ignore[reportAttributeAccessIssue]
    end_line, end_offset = header_end(node)
    return Location(
        file.path,
        line,
        file.column(line, offset),
        end_line,
        file.column(end_line, end_offset),
        qualname,
        how,
        confidence,
        grain,
    )


def line_of(node: ast.AST) -> int:
    """The line on which a call or operator itself stands: of a chained method, the line of its own name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or node.lineno
    return node.lineno  # pyright: ignore[reportAttributeAccessIssue]


def first_line(node: ast.stmt) -> int:
    """The line of the statement, or of its first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])


def qualname_at(file: SourceFile, line: int) -> str:
    """The innermost function that holds `line`; "<module>" outside all."""
    function = file.function_at(line)
    return function.qualname if function is not None else "<module>"


def statement_at(file: SourceFile, line: int) -> ast.stmt | None:
    """The innermost statement whose own lines (a block's header only) include `line`."""
    found: ast.stmt | None = None
    pending: list[ast.AST] = [file.tree] if file.tree is not None else []
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                continue
            if isinstance(child, ast.stmt):
                first = first_line(child)
                if not first <= line <= (child.end_lineno or first):
                    continue
                if line <= max(header_end(child)[0], child.lineno):
                    found = child
            pending.append(child)
    return found


def _word_end(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, keyword: str, name: str) -> tuple[int, int]:
    return node.lineno, node.col_offset + len(keyword) + len(name.encode("utf-8"))
