"""Straight-line code: which statement gave a name the value that is read, and which serve one value alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .bindings import walk_scope
from .outline import LOOPS, Outline, find

NO_VERSION = -1


@dataclass(frozen=True, slots=True)
class Block:
    """One list of statements of a function, read from top to bottom."""

    outline: Outline
    statements: list[ast.stmt]

    def version(self, name: ast.Name, without: Sequence[ast.stmt] = ()) -> int:
        """Which of the statements, `without` some, last set a name before it is read; NO_VERSION: none of them."""
        reader = self._holding(name)
        return self.version_at(name.id, 0 if reader is None else reader, without)

    def version_at(self, name: str, reader: int, without: Sequence[ast.stmt] = ()) -> int:
        """The same for a name read in the statement at a place of the block."""
        for at in range(reader - 1, -1, -1):
            if self.statements[at] not in without and self._stores(self.statements[at], name):
                return at
        return NO_VERSION

    def source(self, name: ast.Name) -> ast.Assign | None:
        """The plain assignment in this block that gave a name the value that is read; None if something else did."""
        at = self.version(name)
        statement = self.statements[at] if at != NO_VERSION else None
        return statement if isinstance(statement, ast.Assign) and _plain_target(statement) else None

    def serving(self, target: ast.stmt, value: ast.expr, gone: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Those of `gone`, assignments above `target`, that nothing reads but one another and `value`, an expression
        in `target`: they can be deleted once that is computed otherwise."""
        kept = list(gone)
        while True:
            needed = [one for one in kept if self._is_read_elsewhere(one, kept, target, value)]
            if not needed:
                return kept
            kept = [one for one in kept if one not in needed]

    def _is_read_elsewhere(
        self, assignment: ast.stmt, others: Sequence[ast.stmt], target: ast.stmt, value: ast.expr
    ) -> bool:
        name = _plain_target(assignment)
        at = self.statements.index(assignment)
        for statement in self.statements[at + 1 :]:
            reads = self._reads(statement, name)
            if statement is target:
                reads -= self._reads(value, name)
            if reads and statement not in others:
                return True
            if self._stores(statement, name):
                return not _is_plain_store(statement, name)
        return self._escapes(name)

    @staticmethod
    def _reads(node: ast.AST, name: str) -> int:
        return sum(one.id == name and isinstance(one.ctx, ast.Load) for one in find(node, ast.Name))

    def _escapes(self, name: str) -> bool:
        """Whether a name that still holds its value at the end of the block is read behind it."""
        first, last = self.statements[0], self.statements[-1]
        function = self.outline.function(first)
        if any(isinstance(above, LOOPS) for above in self.outline.ancestors(first)):
            return True
        end = last.end_lineno or last.lineno
        return any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node.lineno > end
            for node in walk_scope(function)
        )

    def _holding(self, node: ast.AST) -> int | None:
        """The place of the statement that is or holds a node."""
        chain = [node, *self.outline.ancestors(node)]
        return next((i for i, statement in enumerate(self.statements) if statement in chain), None)

    @staticmethod
    def _stores(statement: ast.stmt, name: str) -> bool:
        return any(node.id == name and isinstance(node.ctx, ast.Store | ast.Del) for node in find(statement, ast.Name))


def _plain_target(statement: ast.stmt) -> str:
    """The name that a plain assignment binds; "" for anything else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""


def _is_plain_store(statement: ast.stmt, name: str) -> bool:
    return _plain_target(statement) == name or isinstance(statement, ast.Return)
