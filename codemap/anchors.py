"""A place that survives edits: the function's qualified name and the statement's text, not its line number."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from ..analyzer.findings import Location
from .nodes import children
from .source import SourceFile
from .statements import header_end, location_of


@dataclass(frozen=True, slots=True)
class Anchor:
    """A statement by what it says. `occurrence` counts equal statements of the function from 0."""

    path: str
    qualname: str
    text: str
    """The statement's own text (a block's header), white space between words made one blank."""
    occurrence: int


def anchor_at(file: SourceFile, location: Location) -> Anchor | None:
    """The anchor of the statement that starts on the location's line; None where none does."""
    statements = _statements(file, location.qualname)
    here = next((s for s in statements if s.lineno == location.line), None)
    if here is None:
        return None
    text = _text(file, here)
    before = sum(_text(file, other) == text for other in statements if other.lineno < here.lineno)
    return Anchor(file.path, location.qualname, text, before)


def find_anchor(file: SourceFile, anchor: Anchor, location: Location) -> Location | None:
    """Where the anchored statement stands now; None when the function holds it no more.

    `how` and `confidence` are `location`'s. Of equal statements the one with the anchor's count is taken.
    """
    equal = [s for s in _statements(file, anchor.qualname) if _text(file, s) == anchor.text]
    if not equal:
        return None
    found = equal[min(anchor.occurrence, len(equal) - 1)]
    now = location_of(file, found, anchor.qualname)
    return replace(now, how=location.how, confidence=location.confidence)


def _statements(file: SourceFile, qualname: str) -> list[ast.stmt]:
    """The statements of one function in order of line, those of functions nested in it left out."""
    function = next((f for f in file.functions if f.qualname == qualname), None)
    if function is None or isinstance(function.node, ast.Lambda):
        return []
    found: list[ast.stmt] = []
    pending: list[ast.AST] = [*function.node.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.expr)):
            pending.extend(children(node))
    return sorted(found, key=lambda statement: (statement.lineno, statement.col_offset))


def _text(file: SourceFile, statement: ast.stmt) -> str:
    end_line, end_offset = header_end(statement)
    lines = [line.encode("utf-8") for line in file.lines[statement.lineno - 1 : end_line]]
    lines[-1] = lines[-1][:end_offset]
    lines[0] = lines[0][statement.col_offset :]
    return " ".join(b"\n".join(lines).decode("utf-8", errors="replace").split())
