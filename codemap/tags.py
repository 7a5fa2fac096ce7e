"""Where the source names a range of the profile: `record_function` and its kin, and helpers that take the name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .index import ClassFacts, FileIndex, dotted_name
from .knowledge import Knowledge
from .recorded import RecordedFiles
from .source import Function

_MARKERS = frozenset({"record_function", "RecordFunction", "nvtx.range", "nvtx.annotate", "cuda.nvtx.range"})
_MARKER_WORDS = ("record_function", "RecordFunction", "nvtx")
"""A file that opens a range holds one of these."""
_MOST_FILES = 150

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
    """What callers call: the function, or the class whose `__init__` it is."""
    qualname: str
    template: ast.expr
    """The range's name as the function forms it from the parameter."""
    parameter: str
    position: int
    default: ast.expr | None


_Bound = Mapping[str, tuple[str, bool]]
"""Names with a known text: a regular expression, and whether that is the text itself."""


def find_tags(known: Knowledge, files: RecordedFiles) -> tuple[Tag, ...]:
    """All named ranges of the workspace; literal names first."""
    # Those that open ranges themselves, then those that may call a helper of theirs.
    indices = [known.index(path) for path in known.workspace.holding(*_MARKER_WORDS)]
    helpers: dict[str, _Helper] = {}
    # Helpers that call helpers: two rounds find a wrapper of a wrapper.
    for _ in range(2):
        helpers |= {helper.name: helper for index in indices for helper in _helpers(index, helpers)}
        indices = _with(known, indices, files.calling(*helpers))
    constants = {name: text for index in indices for name, text in _constants(index).items()}
    elsewhere = {name for index in indices for name in _unknown(index, helpers, constants)}
    for index in _with(known, [], files.holding(*elsewhere)):
        constants |= {name: text for name, text in _constants(index).items() if name in elsewhere}
    tags = [tag for index in indices for tag in _tags(index, helpers, {**constants, **_constants(index)})]
    return tuple(sorted(tags, key=lambda tag: not tag.is_literal))


def _with(known: Knowledge, indices: list[FileIndex], paths: Iterable[str]) -> list[FileIndex]:
    """The indices, and those of further files, as many as can be looked through."""
    seen = {index.file.path for index in indices}
    more = [path for path in paths if path not in seen]
    return [*indices, *(known.index(path) for path in more[:_MOST_FILES])]


def _unknown(index: FileIndex, helpers: Mapping[str, _Helper], constants: _Bound) -> Iterator[str]:
    """Names in the names of ranges that no file looked at so far says the text of."""
    for call in index.nodes:
        if isinstance(call, ast.Call) and ((name := _marker_name(call)) is not None or _helper_of(call, helpers)):
            given = [name] if name is not None else [*call.args, *(keyword.value for keyword in call.keywords)]
            for node in (part for one in given for part in ast.walk(one)):
                if isinstance(node, (ast.Name, ast.Attribute)):
                    bare = dotted_name(node).rpartition(".")[2]
                    if bare and bare not in constants:
                        yield bare


def _helper_of(call: ast.Call, helpers: Mapping[str, _Helper]) -> _Helper | None:
    """The helper that a call calls."""
    return helpers.get(dotted_name(call.func).rpartition(".")[2])


def _tags(index: FileIndex, helpers: Mapping[str, _Helper], constants: _Bound) -> Iterator[Tag]:
    inside = tuple(helper.qualname for helper in _helpers(index, helpers))
    for node, function in _ranges(index):
        qualname = function.qualname if function is not None else "<module>"
        if any(f"{qualname}.".startswith(f"{helper}.") for helper in inside):
            continue  # the helper's own range: its callers say the name, and what it covers
        holders = node.decorator_list if isinstance(node, FunctionDef) else [i.context_expr for i in node.items]
        for call in holders:
            named = _named(call, helpers, constants) if isinstance(call, ast.Call) else None
            if named is not None and named[0] != ".*":
                yield Tag(index.file.path, _compiled(named[0]), named[1], node, qualname)


def _named(call: ast.Call, helpers: Mapping[str, _Helper], constants: _Bound) -> tuple[str, bool] | None:
    """The pattern of the range that a call opens, and whether it is one text; None if it opens none."""
    if (name := _marker_name(call)) is not None:
        return _name_pattern(name, constants)
    helper = _helper_of(call, helpers)
    if helper is None:
        return None
    passed = next((keyword.value for keyword in call.keywords if keyword.arg == helper.parameter), None)
    if passed is None:
        passed = call.args[helper.position] if helper.position < len(call.args) else helper.default
    value = (".*", False) if passed is None else _name_pattern(passed, constants)
    return _name_pattern(helper.template, {**constants, helper.parameter: value})


def _ranges(index: FileIndex) -> Iterator[tuple[ast.With | ast.AsyncWith | FunctionDef, Function | None]]:
    """Everything that can be a range, with the function it is in (or is)."""
    by_node = {function.node: function for function in index.file.functions}
    for node in index.nodes:
        if isinstance(node, FunctionDef):
            yield node, by_node.get(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield node, index.file.function_at(node.lineno)


def _marker_name(call: ast.Call) -> ast.expr | None:
    """The name that a profiler's own marker is given; None for any other call."""
    called = dotted_name(call.func)
    if not any(called == marker or called.endswith("." + marker) for marker in _MARKERS):
        return None
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "name"), None)


def _helpers(index: FileIndex, known: Mapping[str, _Helper]) -> Iterator[_Helper]:
    """Context managers, decorators and classes that name a range after a parameter of theirs."""
    for function in index.file.functions:
        node = function.node
        if not isinstance(node, FunctionDef):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = dict(zip([a.arg for a in reversed(arguments)], reversed(node.args.defaults), strict=False))
        names = [a.arg for a in arguments]
        offset = 1 if names[:1] in (["self"], ["cls"]) else 0
        called = function.qualname.split(".")[-2] if node.name == "__init__" else node.name
        for template in _templates(node, known, index.classes.get(called)):
            for part in ast.walk(template):
                if isinstance(part, ast.Name) and part.id in names:
                    position = names.index(part.id) - offset
                    yield _Helper(called, function.qualname, template, part.id, position, defaults.get(part.id))


def _templates(node: FunctionDef, known: Mapping[str, _Helper], owner: ClassFacts | None) -> Iterator[ast.expr]:
    """Names of the ranges that a function opens for somebody else: round its `yield`, in a function that it returns,
    or by handing the marker out."""
    inner = [part for child in node.body for part in ast.walk(child)]
    is_helper = any(isinstance(part, ast.Yield | FunctionDef) for part in inner)
    returned = {part.value for part in inner if isinstance(part, ast.Return)}
    for call in inner:
        if not isinstance(call, ast.Call):
            continue
        name = _marker_name(call)
        helper = _helper_of(call, known)
        if name is None and helper is not None and helper.position < len(call.args):
            name = call.args[helper.position]
        if name is None and owner is not None and _is_base_call(call, owner):
            name = call.args[0] if call.args else None
        if name is not None and (is_helper or call in returned or node.name == "__init__"):
            yield name


def _is_base_call(call: ast.Call, owner: ClassFacts) -> bool:
    """`super().__init__(name)` in a class derived from a marker."""
    is_marker = any(base == marker or base.endswith("." + marker) for base in owner.bases for marker in _MARKERS)
    return is_marker and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"


def _constants(index: FileIndex) -> dict[str, tuple[str, bool]]:
    """Names bound to a string at module or class level."""
    found: dict[str, tuple[str, bool]] = {}
    bodies: list[Iterable[ast.stmt]] = [] if index.file.tree is None else [index.file.tree.body]
    bodies += [facts.node.body for facts in index.classes.values()]
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name) and isinstance(statement.value.value, str):
                    found[target.id] = re.escape(statement.value.value), True
    return found


def _name_pattern(node: ast.expr, constants: _Bound) -> tuple[str, bool]:
    """A regular expression for the values of a string expression, and whether there is but one value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value), True
    if isinstance(node, (ast.Name, ast.Attribute)):
        return constants.get(dotted_name(node).rpartition(".")[2], (".*", False))
    if isinstance(node, ast.FormattedValue):
        return _name_pattern(node.value, constants)
    if isinstance(node, ast.JoinedStr):
        parts = [_name_pattern(value, constants) for value in node.values]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_name_pattern(node.left, constants), _name_pattern(node.right, constants)]
    else:
        return ".*", False
    return "".join(pattern for pattern, _ in parts) or ".*", all(is_literal for _, is_literal in parts)


def _compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression, in which each wildcard takes as little as it can and never tries more.

    That finds the same names; trying every way of sharing a long name out between some wildcards would take for ever.
    A group looked ahead for and then repeated is atomic, in Python 3.10 too.
    """
    first, *rest = pattern.split(".*")
    if not rest:
        return re.compile(pattern, re.DOTALL)
    *middle, last = rest
    atoms = "".join(f"(?=(?P<g{number}>.*?{part}))(?P=g{number})" for number, part in enumerate(middle))
    return re.compile(f"{first}{atoms}.*{last}", re.DOTALL)
