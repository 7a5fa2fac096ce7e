"""Putting a `record_function` range round statements: the edit, its name, and why it cannot be where it cannot.

The selected lines must hold whole statements of one block; with nothing selected it is the statement at the cursor.
Only white space and one line are added (and an import, where none leads to `record_function`), so comments stay; the
lines inside of strings are not moved. The result is parsed and compared before it is offered.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analyzer.findings import TextEdit
from .edits import EditError, apply_edits
from .expressions import last_name
from .fixes.bindings import FUNCTIONS, bindings_of, walk_scope
from .fixes.edits import Patch
from .fixes.imports import name_for
from .fixes.outline import Outline, outline
from .source import SourceFile
from .statements import first_line as _first

RANGE = "torch.profiler.record_function"
_DEFAULT_INDENT = "    "
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)
_BODIES = ("body", "orelse", "finalbody")
_NAMED = re.compile(r"record_function\(\s*[\"']([^\"']*)[\"']")


@dataclass(frozen=True, slots=True)
class Selected:
    """Statements that follow one another in a block, and the lines that they take, comments before them included."""

    holder: ast.AST
    """What the block belongs to: a function, a loop, the module."""
    statements: tuple[ast.stmt, ...]
    first_line: int
    last_line: int


def check_tag(file: SourceFile, first_line: int, last_line: int) -> None:
    """Raises EditError, saying why, where `tag_edits` has nothing to put a range round; a quick look for menus."""
    _checked(file, first_line, last_line)


def tag_edits(file: SourceFile, first_line: int, last_line: int) -> tuple[TextEdit, ...]:
    """The edits that put a range round the statements on lines `first_line` to `last_line` (from 1).

    Raises EditError, saying why, where there is nothing to put it round or it would change what the program does.
    """
    known, selected = _checked(file, first_line, last_line)
    patch = Patch(known)
    called = name_for(patch, RANGE)
    _check_name(known, selected, called.partition(".")[0], patch)
    indent = known.indentation(selected.statements[0])
    line = f'{indent}with {called}("{_name(known, selected)}"):{known.newline}'
    patch.insert(known.line_starts[selected.first_line - 1], line)
    deeper = _unit(known, indent)
    for number in _movable(known, selected):
        patch.insert(known.line_starts[number - 1], deeper)
    edits = patch.edits()
    _verify(known, selected, edits)
    return edits


def _checked(file: SourceFile, first_line: int, last_line: int) -> tuple[Outline, Selected]:
    """The statements on the lines, if a range may be put round them. Raises EditError."""
    known = outline(file)
    if known is None:
        raise EditError(f"the file cannot be parsed ({file.error})")
    selected = select(known, first_line, last_line)
    _check(known, selected)
    return known, selected


# What is selected


def select(file: Outline, first_line: int, last_line: int) -> Selected:
    """The statements on the given lines. Raises EditError if the lines hold none, or part of one."""
    lines = file.file.lines
    last_line = min(max(first_line, last_line), len(lines))
    while first_line < last_line and not lines[first_line - 1].strip():
        first_line += 1
    while last_line > first_line and not lines[last_line - 1].strip():
        last_line -= 1
    is_cursor = first_line == last_line
    holder, block = _block(file, first_line, last_line, exactly=not is_cursor)
    inside = [one for one in block if _last(one) >= first_line and _first(one) <= last_line]
    if not inside:
        raise EditError("there is no statement on these lines")
    start, end = _first(inside[0]), max(map(_last, inside))
    if not is_cursor and (start < first_line or end > last_line):
        raise EditError("the selection cuts a statement; select whole ones")
    return Selected(holder, tuple(inside), min(first_line, start) if not is_cursor else start, end)


def _block(file: Outline, first_line: int, last_line: int, *, exactly: bool) -> tuple[ast.AST, Sequence[ast.stmt]]:
    """The innermost block that holds all of the lines, where `exactly` the one whose statements they can be; and what
    it belongs to."""
    holder: ast.AST = file.tree
    block: Sequence[ast.stmt] = file.tree.body
    while True:
        touched = [one for one in block if _last(one) >= first_line and _first(one) <= last_line]
        if len(touched) != 1 or (exactly and _first(touched[0]) >= first_line and _last(touched[0]) <= last_line):
            return holder, block
        inner = next((b for b in _blocks(touched[0]) if _holds(file, b, first_line, last_line)), None)
        if inner is None:
            return holder, block
        holder, block = touched[0], inner


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of a compound statement."""
    for name in _BODIES:
        if found := getattr(statement, name, None):
            yield found
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, ()):
            yield part.body


def _holds(file: Outline, block: Sequence[ast.stmt], first_line: int, last_line: int) -> bool:
    """Whether lines lie in a block of its own lines, from comments before its first statement to its last line."""
    start = _first(block[0])
    if file.indentation(block[0]) == "" or _shares_line(file, block[0]):
        return False  # behind a colon: `if x: y()`
    while start > 1 and file.file.lines[start - 2].lstrip().startswith("#"):
        start -= 1
    return start <= first_line and last_line <= max(map(_last, block))


def _shares_line(file: Outline, statement: ast.stmt) -> bool:
    start = file.line_starts[statement.lineno - 1]
    return bool(file.text[start : file.span(statement)[0]].strip())


def _last(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


# Whether it may be done


def _check(file: Outline, selected: Selected) -> None:
    first, holder = selected.statements[0], selected.holder
    for one in selected.statements:
        if isinstance(one, _DEFINITIONS):
            raise EditError("a definition or an import takes no time to speak of; tag what is called")
        if isinstance(one, (ast.Global, ast.Nonlocal)):
            raise EditError("a declaration of names has to stand before what uses them")
    if isinstance(holder, ast.ClassDef):
        raise EditError("what stands in a class body runs once")
    if len(selected.statements) == 1 and _is_docstring(holder, first):
        raise EditError("a docstring takes no time")
    if _is_docstring(holder, first):
        raise EditError("the selection holds the docstring, which has to stay first")
    if len(selected.statements) == 1 and isinstance(first, ast.With):
        called = [item.context_expr for item in first.items]
        if any(isinstance(c, ast.Call) and file.segment(c.func).endswith("record_function") for c in called):
            raise EditError("there is a range round this block already")
    nodes = [inner for one in selected.statements for inner in (one, *walk_scope(one))]
    if any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in nodes):
        raise EditError("others run in the middle of this (yield or await); a range would cover their work too")
    if _shares_line(file, first):
        raise EditError("the statement shares its line with another")


def _is_docstring(holder: ast.AST | None, statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            has_one = isinstance(holder, (*FUNCTIONS, ast.ClassDef, ast.Module))
            return has_one and holder.body[0] is statement
        case _:
            return False


def _check_name(file: Outline, selected: Selected, root: str, patch: Patch) -> None:
    """See that the name that leads to `record_function` means that where it is used."""
    first = selected.statements[0]
    added = [edit.line for edit in patch.edits()]
    scopes = [*file.scopes(first)]
    if added and len(scopes) == 1 and selected.first_line < max(added):
        raise EditError("an import would have to be added behind this place")
    for scope in scopes:
        for binding in bindings_of(scope) if not isinstance(scope, ast.ClassDef) else ():
            if binding.name != root:
                continue
            is_import = isinstance(binding.node, (ast.Import, ast.ImportFrom))
            if not is_import or (scope is not file.tree and getattr(binding.node, "lineno", 0) >= selected.first_line):
                raise EditError(f"{root} is another thing here")


def _verify(file: Outline, selected: Selected, edits: Sequence[TextEdit]) -> None:
    """The edited text must be the same statements, in the new block."""
    wanted = [ast.dump(one) for one in selected.statements]
    try:
        tree = ast.parse(apply_edits(file.text, edits))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise EditError(f"the statements cannot be moved to the right as they are: {error}") from error
    # The line is the first of the selection, moved on by an import that was added before it.
    found = (node for node in ast.walk(tree) if isinstance(node, ast.With))
    near = (node.body for node in found if 0 <= node.lineno - selected.first_line <= 1)
    if not any([ast.dump(one) for one in body] == wanted for body in near):
        raise EditError("the statements cannot be moved to the right as they are")


# How it reads


def _name(file: Outline, selected: Selected) -> str:
    """`forward.attn`: the function, and what its first statement calls, else the first name in it; never one twice."""
    first = selected.statements[0]
    function = next((scope.name for scope in file.scopes(first) if isinstance(scope, FUNCTIONS)), "")
    nodes = [node for one in selected.statements for node in ast.walk(one)]
    called = [last_name(node.func) for node in nodes if isinstance(node, ast.Call)]
    names = [*called, *(node.id for node in nodes if isinstance(node, ast.Name))]
    name = ".".join(part for part in (function, next(filter(None, names), "")) if part) or "block"
    taken = set(_NAMED.findall(file.text))
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _unit(file: Outline, indent: str) -> str:
    """One step of indentation as this file does it."""
    if "\t" in indent:
        return "\t"
    for node in file.nodes:
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body and not _shares_line(file, body[0]):
            outer, inner = file.indentation(node), file.indentation(body[0])
            if inner.startswith(outer) and len(inner) > len(outer):
                return inner.removeprefix(outer)
    return _DEFAULT_INDENT


def _movable(file: Outline, selected: Selected) -> Iterator[int]:
    """The lines to be indented: those with something on them, that do not begin inside of a string."""
    inside = _in_strings(file, selected)
    for line in range(selected.first_line, selected.last_line + 1):
        if line not in inside and file.file.lines[line - 1].strip():
            yield line


def _in_strings(file: Outline, selected: Selected) -> set[int]:
    """Lines of the selection whose first character belongs to a string that began on an earlier one."""
    opening = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
    closing = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
    before = selected.first_line - 1
    inside: set[int] = set()
    opened: list[int] = []
    text = "\n".join([*file.file.lines[before : selected.last_line], ""])
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in opening:
                opened.append(token.start[0])
            elif token.type in closing and opened:
                inside.update(range(before + opened.pop() + 1, before + token.end[0] + 1))
            elif token.type == tokenize.STRING:
                inside.update(range(before + token.start[0] + 1, before + token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError) as error:
        raise EditError(f"the lines cannot be read as tokens: {error}") from error
    return inside
