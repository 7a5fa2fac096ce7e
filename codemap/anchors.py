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
    """A statement by what it says. `occurrence` counts equal statements of the function from 0; there are `count`."""

    path: str
    qualname: str
    text: str
    """The statement's own text (a block's header), white space between words made one blank."""
    occurrence: int
    count: int = 1


def anchor_at(file: SourceFile, location: Location) -> Anchor | None:
    """The anchor of the statement that starts on the location's line; None where none does."""
    statements = _statements(file, location.qualname)
    here = next((s for s in statements if s.lineno == location.line), None)
    if here is None:
        return None
    text = _text(file, here)
    equal = [other for other in statements if _text(file, other) == text]
    before = sum(other.lineno < here.lineno for other in equal)
    return Anchor(file.path, location.qualname, text, before, len(equal))


def find_anchor(file: SourceFile, anchor: Anchor, location: Location) -> Location | None:
    """Where the anchored statement stands now; None when the function holds it no more, or which it is cannot be told.

    `how` and `confidence` are `location`'s. Of equal statements, as long as none was added or taken away, it is the one
    with the anchor's count; else the one at `location`, where the editor has moved it to.
    """
    equal = [s for s in _statements(file, anchor.qualname) if _text(file, s) == anchor.text]
    if len(equal) == anchor.count and anchor.occurrence < len(equal):
        found = equal[anchor.occurrence]
    else:
        found = next((statement for statement in equal if statement.lineno == location.line), None)
    if found is None:
        return None
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
