"""One Python file as the codemap sees it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from .nodes import children, deeper_than

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module

BOM = "\ufeff"
MAX_DEPTH = 200
"""Files whose syntax tree is deeper are left alone: whoever walks one by recursion needs some frames for each level.
Written code stays below 50; a chain of as many `elif` or `+` is generated."""
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Function:
    """A function, method or lambda, or the module itself (qualname "<module>", name "<module>")."""

    qualname: str
    name: str
    first_line: int
    """The line a trace gives: the first decorator's, else the `def`'s. 1 for the module."""
    end_line: int
    node: FunctionNode


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A parsed file. `path` is relative to the workspace root, with "/". `tree` is None on a syntax error.

    Lines part at \\n, \\r\\n and \\r only, as Python counts them.
    """

    path: str
    text: str
    lines: tuple[str, ...]
    """Without their ends; `lines[0]` is line 1."""
    tree: ast.Module | None
    functions: tuple[Function, ...]
    """In order of `first_line`, the module first."""
    error: str = ""
    derived: dict[type, Any] = field(default_factory=dict, compare=False, repr=False)
    """What others worked out of the file, by its type: kept as long as the file is."""

    def column(self, line: int, utf8_offset: int) -> int:
        """The column (from 1, in code points) of an `ast` offset (from 0, in UTF-8 bytes) on a line (from 1)."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            return utf8_offset + 1
        return len(text.encode("utf-8")[:utf8_offset].decode("utf-8", errors="ignore")) + 1

    def function_at(self, line: int) -> Function | None:
        """The innermost function whose lines include `line`; the module outside all; None without a tree."""
        if not self.functions:
            return None
        if _Reach not in self.derived:
            self.derived[_Reach] = _Reach.of(self.functions)
        reach: _Reach = self.derived[_Reach]
        # The one that begins last is innermost: of thousands of functions only those near the line are looked at.
        position = bisect_right(reach.first_lines, line)
        found: Function | None = None
        while position > 1 and reach.furthest[position - 1] >= line:
            position -= 1
            function = self.functions[position]
            if found is not None and function.first_line < found.first_line:
                break
            if function.end_line >= line and (found is None or function.end_line <= found.end_line):
                found = function
        return found or self.functions[0]


@dataclass(frozen=True, slots=True)
class _Reach:
    """A file's functions by line, for `function_at`."""

    first_lines: tuple[int, ...]
    furthest: tuple[int, ...]
    """The last line that this function or one before it reaches, the module left out."""

    @staticmethod
    def of(functions: Sequence[Function]) -> _Reach:
        """The table of functions in order of their first lines, the module first."""
        ends = accumulate((function.end_line for function in functions[1:]), max, initial=0)
        return _Reach(tuple(function.first_line for function in functions), tuple(ends))


def decode(data: bytes) -> tuple[str, str]:
    """The text of a Python file by its byte order mark or coding comment, and "" or what is wrong with it."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding), ""
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return data.decode("utf-8", errors="replace"), f"cannot be decoded: {error}"


def split_lines(text: str) -> tuple[str, ...]:
    """Lines without their ends, parted at \\n, \\r\\n and \\r only (`str.splitlines` parts at more)."""
    return tuple(_LINE_END.split(text))


def parse_source(path: str, text: str, error: str = "") -> SourceFile:
    """Parse a file's text. A text that is no Python gives a file without tree or functions, and says why."""
    text = text.removeprefix(BOM)
    tree = None
    if not error:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except SyntaxError as problem:
            error = f"line {problem.lineno}: {problem.msg}"
        except (ValueError, RecursionError, MemoryError) as problem:  # a NUL byte; nesting too deep for the parser
            error = f"cannot be parsed: {problem}"
        if tree is not None and deeper_than(tree, MAX_DEPTH):
            tree, error = None, f"nested deeper than {MAX_DEPTH} levels"
    lines = split_lines(text)
    functions = () if tree is None else _functions(tree, len(lines), has_lambda="lambda" in text)
    return SourceFile(path, text, lines, tree, functions, error)


def _functions(tree: ast.Module, line_count: int, has_lambda: bool) -> tuple[Function, ...]:
    """All functions of a module, by explicit stack: deeply nested code must not exhaust Python's."""
    found = [Function("<module>", "<module>", 1, max(line_count, 1), tree)]
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, prefix = pending.pop()
        for child in children(node):
            if isinstance(child, ast.expr) and not has_lambda:
                continue
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = prefix + child.name
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                found.append(Function(inner, child.name, first, child.end_lineno or first, child))
            elif isinstance(child, ast.Lambda):
                inner = prefix + "<lambda>"
                found.append(Function(inner, "<lambda>", child.lineno, child.end_lineno or child.lineno, child))
            elif isinstance(child, ast.ClassDef):
                inner = prefix + child.name
            pending.append((child, inner if inner == prefix else inner + "."))
    found[1:] = sorted(found[1:], key=lambda function: (function.first_line, -function.end_line))
    return tuple(found)
