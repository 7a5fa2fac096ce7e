"""Walking syntax trees: `ast.walk` asks every node for its fields by name, which costs more than parsing the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LEAVES = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
"""One object each for all of a tree, so they have no place in it."""


def children(node: ast.AST) -> Iterator[ast.AST]:
    """What `ast.iter_child_nodes` gives for a parsed node, without contexts and operators."""
    for value in node.__dict__.values():  # the parser sets fields in the order of `_fields`
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST) and not isinstance(item, _LEAVES):
                    yield item
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            yield value


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Each node below `tree` with its parent, the nodes in the order of `ast.walk`."""
    parents: dict[ast.AST, ast.AST] = {}
    level = [tree]
    while level:
        below: list[ast.AST] = []
        for node in level:
            for child in children(node):
                parents[child] = node
                below.append(child)
        level = below
    return parents


def deeper_than(tree: ast.AST, limit: int) -> bool:
    """Whether some node lies more than `limit` levels below `tree`."""
    level = [tree]
    for _ in range(limit + 1):
        level = [child for node in level for child in children(node)]
    return bool(level)
