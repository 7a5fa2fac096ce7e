"""The code that a case points at: its statements, its callers' statements, and a resolver that knows the stack."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...analyzer.findings import Finding, Location, Safety
from ..asking import is_same_line, used_in
from ..workspace import Workspace
from .base import Case, Confirmation, DeviceFacts
from .bindings import FUNCTIONS
from .outline import Outline, header, outline
from .resolve import Resolver, Value

Confirm = Callable[[Case], Confirmation | None]

_MOST_FILES = 150
"""So many files that hold one of its words are searched for a fault."""
_MOST_FOUND = 8
"""A fault that as many statements hold has no place."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One level of the stack: the statements at a place of one file."""

    outline: Outline
    place: Location
    statements: tuple[ast.stmt, ...]

    def values(self) -> Iterator[Value]:
        """All expressions that the statements evaluate themselves (not those in a compound statement's body)."""
        for statement in self.statements:
            for expression in header(statement):
                for node in ast.walk(expression):
                    if isinstance(node, ast.expr):
                        yield Value(self.outline, node)

    def calls(self) -> list[ast.Call]:
        """Calls in the statements, in the order of the text."""
        found = [value.node for value in self.values() if isinstance(value.node, ast.Call)]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))


@dataclass(frozen=True, slots=True)
class Scene:
    """A case, looked up in its workspace."""

    case: Case
    resolver: Resolver
    frames: tuple[Frame, ...]
    """The place itself, then its callers, innermost first."""

    @property
    def here(self) -> Frame:
        """The place itself."""
        return self.frames[0]


def scene(case: Case) -> Scene | None:
    """The scene of a case; None when the place's file is gone or has a syntax error."""
    frames = [frame for place in (case.location, *case.callers) if (frame := _frame(case.workspace, place)) is not None]
    if not frames or frames[0].place is not case.location:
        return None
    return Scene(case, Resolver(case.workspace, case.callers), tuple(frames))


def _frame(workspace: Workspace, place: Location) -> Frame | None:
    file = outline(workspace.file(place.path))
    if file is None:
        return None
    statements: list[ast.stmt] = []
    for statement in file.statements_at(place):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            # Only the function is known, not the statement: all of it is the place.
            statements.extend(node for node in ast.walk(statement) if isinstance(node, ast.stmt))
        else:
            statements.append(statement)
    unique = dict.fromkeys(statements)
    return Frame(file, place, tuple(sorted(unique, key=lambda node: (node.lineno, node.col_offset))))


def searcher(
    confirm: Confirm, words: Sequence[str], words_in: Callable[[Outline], Sequence[str]] | None = None
) -> Callable[[Finding, Workspace, DeviceFacts], Sequence[Confirmation]]:
    """A `search` that asks `confirm` at every statement whose text holds one of `words`, safe fixes first. With
    `words_in` a file that holds one of `words` is asked what its statements must hold: what it calls its layers."""

    def search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
        found: dict[tuple[str, int, int], Confirmation] = {}
        for file, statement in _statements_with(workspace, words, words_in):
            place = file.location(statement)
            answer = confirm(Case(replace(finding, location=place), place, (), workspace, device))
            if answer is not None:
                if not is_same_line(answer.location, place):
                    answer = replace(answer, related=(*answer.related, used_in(place)))
                found.setdefault((answer.location.path, answer.location.line, answer.location.column), answer)
            if len(found) > _MOST_FOUND:
                break
        return sorted(found.values(), key=_offer)

    return search


def fixable(
    search: Callable[[Finding, Workspace, DeviceFacts], Sequence[Confirmation]],
) -> Callable[[Finding, Workspace, DeviceFacts], Sequence[Confirmation]]:
    """A search that answers only places with a fix: for faults whose shape is common in code that is none."""
    return lambda finding, workspace, device: [one for one in search(finding, workspace, device) if one.fixes]


def frames_with(workspace: Workspace, words: Sequence[str]) -> Iterator[Frame]:
    """A frame for every statement whose text holds one of `words`."""
    for file, statement in _statements_with(workspace, words):
        yield Frame(file, file.location(statement), (statement,))


def _offer(confirmation: Confirmation) -> int:
    safeties = [fix.safety for fix in confirmation.fixes]
    return 0 if Safety.SAFE in safeties else 1 if safeties else 2


def _statements_with(
    workspace: Workspace, words: Sequence[str], words_in: Callable[[Outline], Sequence[str]] | None = None
) -> Iterable[tuple[Outline, ast.stmt]]:
    searched = 0
    for path in workspace.paths():
        text = workspace.text(path)
        if text is None or not any(word in text for word in words):
            continue
        searched += 1
        if searched > _MOST_FILES:
            return
        file = outline(workspace.file(path))
        if file is None:
            continue
        held = words if words_in is None else words_in(file)
        for statement in file.statements if held else ():
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                continue
            last = max((node.end_lineno or 0 for node in header(statement)), default=statement.lineno)
            written = "\n".join(file.file.lines[statement.lineno - 1 : last])
            if any(word in written for word in held):
                yield file, statement
