"""The code objects of a file as a trace names them: by first line and bare name."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .expressions import COMPREHENSION_FRAME
from .grammar import CodeNode
from .index import FileIndex


@dataclass(frozen=True, slots=True)
class Code:
    """Whatever has a frame of its own: a function, lambda, comprehension, class body or the module."""

    qualname: str
    """Of the function itself; of the enclosing function for a comprehension."""
    name: str
    first_line: int
    end_line: int
    node: CodeNode


@dataclass(frozen=True, slots=True)
class Found:
    """The code that a frame ran."""

    code: Code
    was_running: bool
    """The frame's number is a line inside the body: it was on the stack when recording began."""
    is_current: bool
    """False where only the name fits: the file was edited since the recording."""


class Codes:
    """Finds code objects of one file."""

    def __init__(self, index: FileIndex) -> None:
        file = index.file
        self._by_name: dict[str, list[Code]] = {}
        for function in file.functions:
            self._add(Code(function.qualname, function.name, function.first_line, function.end_line, function.node))
        for node in index.nodes:
            if isinstance(node, ast.ClassDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self._add(Code(node.name, node.name, first, node.end_lineno or first, node))
            elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                function = file.function_at(node.lineno)
                qualname = function.qualname if function is not None else "<module>"
                end = node.end_lineno or node.lineno
                self._add(Code(qualname, COMPREHENSION_FRAME[type(node)], node.lineno, end, node))

    def has(self, name: str) -> bool:
        """Whether any code has this bare name."""
        return name in self._by_name

    def find(self, name: str, line: int) -> Found | None:
        """The code of a frame `file(line): name`; None if the file has no such function, or too many."""
        named = self._by_name.get(name, [])
        exact = [code for code in named if code.first_line == line]
        if exact and name != "<module>":
            return Found(exact[0], was_running=False, is_current=True)
        holding = [code for code in named if code.first_line <= line <= code.end_line]
        if holding:
            code = min(holding, key=lambda code: code.end_line - code.first_line)
            return Found(code, line > code.first_line, is_current=True)
        if len(named) == 1:
            return Found(named[0], was_running=False, is_current=False)
        return None

    def _add(self, code: Code) -> None:
        self._by_name.setdefault(code.name, []).append(code)
