"""Putting an expression's text into another one: where brackets are needed."""

from __future__ import annotations

import ast

from .outline import Outline

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_OPEN = (ast.stmt, ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.FormattedValue)
"""What an expression may stand in without being an operand."""


def in_brackets(file: Outline, node: ast.expr) -> str:
    """An expression's text as an operand: in brackets unless it is a name, a call or the like."""
    text = file.segment(node)
    is_atom = isinstance(node, _ATOMS) and not (isinstance(node, ast.Constant) and not isinstance(node.value, str))
    return text if is_atom else f"({text})"


def stands_alone(file: Outline, node: ast.expr) -> bool:
    """Whether an expression is no operand of another one: an operation can take its place as it is."""
    parent = file.parents[node]
    if isinstance(parent, ast.Call):
        return parent.func is not node
    return isinstance(parent, _OPEN)
