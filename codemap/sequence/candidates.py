"""Which programs of a workspace a trace may be of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..knowledge import Knowledge
from ..recorded import RecordedFiles
from .program import Program
from .walker import Walker

_MOST_SCRIPTS = 8
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def programs(known: Knowledge, files: RecordedFiles) -> Iterator[Program]:
    """The scripts of the workspace, those first that look most like a training or inference run."""
    paths = sorted(files.paths(), key=lambda path: -_script_score(known, path))
    for path in paths[:_MOST_SCRIPTS]:
        if _script_score(known, path) > 0:
            walker = Walker(known)
            walker.walk_script(path)
            yield walker.program


def _script_score(known: Knowledge, path: str) -> int:
    """How much of a file runs when it is run: statements that are neither definitions nor constants."""
    tree = known.file(path).tree
    if tree is None:
        return 0
    score = 0
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
            score += 10
        elif isinstance(statement, (ast.For, ast.While, ast.With, ast.Try)):
            score += 2
        elif isinstance(statement, (ast.Expr, ast.Assign)):
            score += any(isinstance(part, ast.Call) for part in ast.walk(statement.value))
    return score
