"""Where the source names a range of the profile: `record_function` and its kin, and helpers that take the name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .index import FileIndex, dotted_name
from .knowledge import Knowledge
from .source import Function

_MARKERS = frozenset({"record_function", "RecordFunction", "nvtx.range", "nvtx.annotate", "cuda.nvtx.range"})
_MOST_FILES = 2_000

FunctionDef = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Tag:
    """One named range: the statements it covers."""

    path: str
    pattern: re.Pattern[str]
    """Matches the annotation's whole name; a part that is known only when running matches anything."""
    is_literal: bool
    node: ast.With | ast.AsyncWith | FunctionDef
    """The `with` statement, or the decorated function."""
    qualname: str


@dataclass(frozen=True, slots=True)
class _Helper:
    """A function that names a range after one of its parameters."""

    name: str
    parameter: str
    position: int
    default: ast.expr | None


def find_tags(known: Knowledge) -> tuple[Tag, ...]:
    """All named ranges of the workspace; literal names first."""
    indices = [known.index(path) for path in known.workspace.paths()[:_MOST_FILES]]
    constants = {name: text for index in indices for name, text in _constants(index).items()}
    helpers: dict[str, _Helper] = {}
    # Helpers that call helpers: two rounds find a wrapper of a wrapper.
    for _ in range(2):
        helpers |= {helper.name: helper for index in indices for helper in _helpers(index, helpers)}
    tags = [tag for index in indices for tag in _tags(index, helpers, {**constants, **_constants(index)})]
    return tuple(sorted(tags, key=lambda tag: not tag.is_literal))


def _tags(index: FileIndex, helpers: Mapping[str, _Helper], constants: Mapping[str, str]) -> Iterator[Tag]:
    path = index.file.path
    inside = {helper.name for helper in _helpers(index, helpers)}
    for node, function in _ranges(index):
        if function is not None and function.qualname.partition(".")[0] in inside:
            continue  # the helper itself: its callers say the name
        holders = node.decorator_list if isinstance(node, FunctionDef) else [i.context_expr for i in node.items]
        for call in holders:
            if not isinstance(call, ast.Call) or (name := _range_name(call, helpers)) is None:
                continue
            pattern, is_literal = _name_pattern(name, constants)
            if pattern != ".*":
                qualname = function.qualname if function is not None else "<module>"
                yield Tag(path, re.compile(pattern, re.DOTALL), is_literal, node, qualname)


def _ranges(index: FileIndex) -> Iterator[tuple[ast.With | ast.AsyncWith | FunctionDef, Function | None]]:
    """Everything that can be a range, with the function it is in (or is)."""
    by_node = {function.node: function for function in index.file.functions}
    for node in index.nodes:
        if isinstance(node, FunctionDef):
            yield node, by_node.get(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield node, index.file.function_at(node.lineno)


def _range_name(call: ast.Call, helpers: Mapping[str, _Helper]) -> ast.expr | None:
    """The expression that a call names a range after; None if it opens none."""
    called = dotted_name(call.func)
    if any(called == marker or called.endswith("." + marker) for marker in _MARKERS):
        return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "name"), None)
    helper = helpers.get(called.rpartition(".")[2])
    if helper is None:
        return None
    named = next((keyword.value for keyword in call.keywords if keyword.arg == helper.parameter), None)
    if named is None and helper.position < len(call.args):
        named = call.args[helper.position]
    return named if named is not None else helper.default


def _helpers(index: FileIndex, known: Mapping[str, _Helper]) -> Iterator[_Helper]:
    """Functions that pass a parameter of theirs on as a range's name, also from a function nested in them."""
    for function in index.file.functions:
        node = function.node
        if not isinstance(node, FunctionDef):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = dict(zip([a.arg for a in reversed(arguments)], reversed(node.args.defaults), strict=False))
        names = [a.arg for a in arguments]
        offset = 1 if names[:1] in (["self"], ["cls"]) else 0
        for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
            passed = _range_name(call, known)
            used = {part.id for part in ast.walk(passed) if isinstance(part, ast.Name)} if passed is not None else set()
            for name in [*names, *(a.arg for a in node.args.kwonlyargs)]:
                if name in used:
                    position = names.index(name) - offset if name in names else len(names)
                    # A class is called by its own name: `Timed("x")` runs `Timed.__init__`.
                    called = function.qualname.split(".")[-2] if node.name == "__init__" else node.name
                    yield _Helper(called, name, position, defaults.get(name))


def _constants(index: FileIndex) -> dict[str, str]:
    """Names bound once to a string, anywhere at module or class level."""
    found: dict[str, str] = {}
    bodies: list[Iterable[ast.stmt]] = [] if index.file.tree is None else [index.file.tree.body]
    bodies += [facts.node.body for facts in index.classes.values()]
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name) and isinstance(statement.value.value, str):
                    found[target.id] = statement.value.value
    return found


def _name_pattern(node: ast.expr, constants: Mapping[str, str]) -> tuple[str, bool]:
    """A regular expression for the values of a string expression, and whether there is but one value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value), True
    if isinstance(node, (ast.Name, ast.Attribute)):
        text = constants.get(dotted_name(node).rpartition(".")[2])
        return (".*", False) if text is None else (re.escape(text), True)
    if isinstance(node, ast.JoinedStr):
        parts = [_name_pattern(value, constants) for value in node.values]
    elif isinstance(node, ast.FormattedValue):
        return _name_pattern(node.value, constants)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_name_pattern(node.left, constants), _name_pattern(node.right, constants)]
    else:
        return ".*", False
    return "".join(pattern for pattern, _ in parts) or ".*", all(is_literal for _, is_literal in parts)
