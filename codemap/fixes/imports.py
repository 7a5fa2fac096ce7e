"""Names that an edit needs: how the file already calls them, or the import to add and where."""

from __future__ import annotations

import ast

from .edits import Patch
from .outline import Outline


def name_for(patch: Patch, dotted: str) -> str:
    """How this file can write `dotted` (`torch.nn.functional.softmax`); adds an import if none leads there.

    The longest prefix that the file's top level imports is used (`F.softmax`, `nn.functional.softmax`). An import
    that is missing is added once, behind the last import of the file's head.
    """
    file = patch.outline
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        alias = next((name for name, full in top_level_imports(file).items() if full == prefix), None)
        if alias is not None:
            return ".".join([alias, *parts[length:]])
    if dotted.startswith("torch.nn.functional."):
        add_import(patch, "import torch.nn.functional as F")
        return "F." + parts[-1]
    add_import(patch, f"import {parts[0]}")
    return dotted


def top_level_imports(file: Outline) -> dict[str, str]:
    """What the module's own imports bind, before anything else is bound to the same name."""
    found: dict[str, str] = {}
    for node in file.tree.body:
        if isinstance(node, ast.Import):
            for item in node.names:
                name = item.asname or item.name.partition(".")[0]
                found[name] = item.name if item.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for item in node.names:
                found[item.asname or item.name] = f"{node.module}.{item.name}"
    return found


def add_import(patch: Patch, line: str) -> None:
    """Add an import line behind the imports at the head of the file."""
    insert_at_head(patch, line)


def insert_at_head(patch: Patch, *lines: str) -> None:
    """Add lines behind the head: its docstring, `__future__` imports and imports, as far as they run unbroken."""
    file = patch.outline
    last = head_end(file)
    if last is None:
        start = _first_code_offset(file)
        patch.insert(start, "".join(line + file.newline for line in lines))
        return
    for line in lines:
        patch.insert_line_after(last, line)


def head_end(file: Outline) -> ast.stmt | None:
    """The last statement of the head: the last import at top level before other code begins, else the docstring."""
    last: ast.stmt | None = None
    for position, node in enumerate(file.tree.body):
        is_docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.Import | ast.ImportFrom):
            last = node
        elif not _is_among_imports(file, node):
            break
    return last


def _is_among_imports(file: Outline, node: ast.stmt) -> bool:
    """Code that often stands between imports (`os.environ[...] = ...`, `try: import x`): only passed over when
    imports follow directly."""
    body = file.tree.body
    following = body[body.index(node) + 1 : body.index(node) + 3]
    return any(isinstance(later, ast.Import | ast.ImportFrom) for later in following)


def _first_code_offset(file: Outline) -> int:
    """Where the first statement's line begins: behind a shebang, a coding line and leading comments."""
    body = file.tree.body
    if not body:
        return len(file.text)
    first = body[0]
    decorated = getattr(first, "decorator_list", [])
    return file.line_starts[min([first.lineno, *(node.lineno for node in decorated)]) - 1]
