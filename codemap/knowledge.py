"""What is known of the workspace's files, each computed once when first asked for."""

from __future__ import annotations

import ast

from .automaton import Automaton
from .codes import Code, Codes
from .grammar import compile_code
from .index import FileIndex, build_index
from .source import SourceFile
from .workspace import Workspace


class Knowledge:
    """Indices, code objects and automata of a workspace's files."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._indices: dict[str, FileIndex] = {}
        self._codes: dict[str, Codes] = {}
        self._automata: dict[ast.AST, Automaton] = {}

    def file(self, path: str) -> SourceFile:
        """The parsed file; one that cannot be read counts as empty."""
        return self.workspace.file(path) or SourceFile(path, "", ("",), None, (), "cannot be read")

    def index(self, path: str) -> FileIndex:
        """The file's index."""
        if path not in self._indices:
            self._indices[path] = build_index(self.file(path))
        return self._indices[path]

    def codes(self, path: str) -> Codes:
        """The file's code objects."""
        if path not in self._codes:
            self._codes[path] = Codes(self.index(path))
        return self._codes[path]

    def automaton(self, path: str, code: Code) -> Automaton:
        """The automaton of one code object."""
        if code.node not in self._automata:
            index = self.index(path)
            function = next((f for f in index.file.functions if f.qualname == code.qualname), None)
            owner = index.class_of(function) if function is not None else None
            self._automata[code.node] = compile_code(code.node, index, owner)
        return self._automata[code.node]
