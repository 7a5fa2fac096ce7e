"""A frame that is normalised whole, and used for nothing but crops that are then stacked."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .edits import Patch
from .normalisations import Normalisation
from .outline import Outline, find, last_name

_STACKS = frozenset({"numpy.stack", "numpy.array", "numpy.asarray"})
_CHANNELS = (1, 3, 4)
"""Lengths of a constant that can only run along an image's channels."""


@dataclass(frozen=True, slots=True)
class Crops:
    """A normalised frame that is used for nothing but crops, which are then stacked."""

    assign: ast.Assign
    reads: tuple[ast.Name, ...]
    frame: str
    stack: ast.Call

    def apply(self, patch: Patch, normalised: str) -> None:
        """Crop the frame itself; the name of the normalised frame becomes that of the normalised crops."""
        for read in self.reads:
            patch.replace(read, self.frame)
        file = patch.outline
        assert isinstance(self.assign.targets[0], ast.Name)
        name, statement = self.assign.targets[0].id, file.statement(self.stack)
        line = f"{file.indentation(statement)}{name} = {normalised}{file.newline}"
        patch.insert(file.line_starts[statement.lineno - 1], line)
        patch.replace(self.stack, name)
        patch.delete([self.assign])


def crops_of(file: Outline, one: Normalisation) -> Crops | None:
    """The crops that are taken of a normalised frame; None where it is used for anything else."""
    assign = file.statement(one.value.node)
    if not isinstance(assign, ast.Assign) or assign.value is not one.value.node or not isinstance(one.image, ast.Name):
        return None
    function, target = file.function(assign), assign.targets[0]
    if len(assign.targets) > 1 or not isinstance(target, ast.Name) or _constant_lengths(one) - set(_CHANNELS):
        return None
    if len(file.bindings(function, target.id)) != 1 or len(file.bindings(function, one.image.id)) > 1:
        return None
    reads = _reads(file, function, target.id)
    lists = {_list_of(file, read) for read in reads}
    name = lists.pop() if len(lists) == 1 else ""
    if not reads or not name or len(file.bindings(function, name)) != 1:
        return None
    uses = [use for use in _reads(file, function, name) if not _is_append(file.parents[use])]
    if len(uses) != 1:
        return None
    stack = file.parents[uses[0]]
    if not isinstance(stack, ast.Call) or file.dotted(stack.func) not in _STACKS or len(stack.args) != 1:
        return None
    shares_line = file.indentation(file.statement(stack)) == "" != file.indentation(assign)
    return None if stack.keywords or shares_line else Crops(assign, tuple(reads), one.image.id, stack)


def _constant_lengths(one: Normalisation) -> set[int]:
    """Lengths of the constants written out in the file; a name from elsewhere counts as channels."""
    file = one.value.outline
    names = {leaf.id for leaf in one.arrays if isinstance(leaf, ast.Name)}
    bound = [b.value for name in names for b in file.bindings(file.tree, name) if b.value is not None]
    return {len(display.elts) for value in bound for display in find(value, ast.List)[:1]}


def _reads(file: Outline, function: ast.AST, name: str) -> list[ast.Name]:
    return [
        node
        for node in find(function, ast.Name)
        if node.id == name and isinstance(node.ctx, ast.Load) and file.function(node) is function
    ]


def _list_of(file: Outline, read: ast.Name) -> str:
    """The list that a crop `image[rows, columns]` is gathered in; "" if it is no crop, or goes elsewhere."""
    crop = file.parents[read]
    if not isinstance(crop, ast.Subscript) or crop.value is not read or not _keeps_channels(crop.slice):
        return ""
    above = file.parents[crop]
    if isinstance(above, ast.Call) and _is_append(above.func) and isinstance(above.func, ast.Attribute):
        return last_name(above.func.value)
    held = file.parents[above] if isinstance(above, ast.ListComp) and above.elt is crop else None
    if isinstance(held, ast.Assign) and isinstance(held.targets[0], ast.Name):
        return held.targets[0].id
    return ""


def _is_append(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "append"


def _keeps_channels(index: ast.expr) -> bool:
    """Whether an index concerns rows and columns only."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return len(parts) <= 2 and not any(
        (isinstance(part, ast.Constant) and not isinstance(part.value, int)) or last_name(part) == "newaxis"
        for part in parts
    )
