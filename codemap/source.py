"""One Python file as the codemap sees it."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function, method or lambda, or the module itself (qualname "<module>", name "<module>")."""

    qualname: str
    name: str
    first_line: int
    """The line a trace gives: the first decorator's, else the `def`'s. 1 for the module."""
    end_line: int
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


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
