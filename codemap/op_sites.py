"""Which calls and operators of the source can run a given operator, whoever calls them.

Not every place that might: those that are written so (`x.item()`, `F.cross_entropy(...)`, `a @ b`, `x[mask]`,
`self.conv(x)` of a layer), by the tables that the alignments use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..analyzer.trace.model import OpInputs
from . import operators
from .expressions import last_name
from .index import ClassFacts, FileIndex, dotted_name
from .knowledge import Knowledge
from .recorded import RecordedFiles
from .sequence.events import LOADER, STEP
from .sequence.shows import Shown, shown_by_function, shown_by_layer
from .source import Function
from .statements import statement_at

_OPTIMIZER = re.compile(r"(^|_|\b)(opt|optim|optimi[sz]er)s?\w*$|scaler$", re.IGNORECASE)
_LOADER = re.compile(r"(loader|dataloader|batches)s?$|DataLoader", re.IGNORECASE)
_GENERIC = frozenset({"list", "dict", "tuple", "set", "frozenset", "type"})
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class OpSite:
    """A call or operator that can run some operator."""

    path: str
    function: Function
    """The innermost one that holds it."""
    statement: ast.AST
    node: ast.AST
    numbers: frozenset[int]
    """The whole numbers that it is given literally."""

    def allows(self, recorded: OpInputs) -> bool:
        """Whether the recorded arguments hold every number that is written at the site; so if none were recorded."""
        values = [value for value in recorded.concrete if value]
        return not values or self.numbers <= {int(n) for value in values for n in _NUMBER.findall(value)[:64]}


def find_op_sites(known: Knowledge, files: RecordedFiles) -> Mapping[str, tuple[OpSite, ...]]:
    """By the operator's name without its namespace (or a name of `sequence.events`), all its sites in the files."""
    found: dict[str, list[OpSite]] = {}
    for path in files.sample():
        index = known.index(path)
        for node in index.nodes:
            names = frozenset(_names(node, index))
            site = _site(node, index) if names else None
            if site is not None:
                for name in names:
                    found.setdefault(name, []).append(site)
    return {name: tuple(sites) for name, sites in found.items()}


def _site(node: ast.AST, index: FileIndex) -> OpSite | None:
    line = node.lineno  # pyright: ignore[reportAttributeAccessIssue]
    statement, function = statement_at(index.file, line), index.file.function_at(line)
    if statement is None or function is None or isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import)):
        return None
    return OpSite(index.file.path, function, statement, node, _numbers(node))


def _names(node: ast.AST, index: FileIndex) -> Iterator[str]:
    """The operators that running this node may show as, outermost."""
    if isinstance(node, ast.Call):
        yield from _of_call(node, index)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        if not _is_text(node):
            yield from _operators(operators.binary(node.op, in_place=isinstance(node, ast.AugAssign)))
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, ast.Not) and not isinstance(node.operand, ast.Constant):
            yield from _operators(operators.unary(node.op))
    elif isinstance(node, ast.Compare):
        yield from _operators(operators.compare(node.ops[0]))
    elif isinstance(node, ast.Subscript):
        yield from _of_subscript(node)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and _is_loader(node.iter, index):
        yield LOADER


def _of_call(node: ast.Call, index: FileIndex) -> Iterator[str]:
    function = node.func
    name = last_name(function) if isinstance(function, (ast.Attribute, ast.Name)) else ""
    if not name:
        return
    if isinstance(function, ast.Name):
        if name in index.functions or name in index.classes:
            return
        name = index.imports.get(name, name).rpartition(".")[2]
        if name in ("int", "float", "bool"):
            yield from _operators(operators.NUMBER)
            return
    elif (owner := _owner(node, index)) is not None:
        if name in owner.methods:
            return
        if kind := owner.attributes.get(name):
            yield from _required(shown_by_layer(kind) or ())
            return
    elif name == "step" and isinstance(function, ast.Attribute):
        if _OPTIMIZER.search(dotted_name(function.value)) or _origin(function.value, index).startswith("torch.optim."):
            yield STEP
        return
    if name in ("next", "iter") and node.args and _is_loader(node.args[0], index):
        yield LOADER
    yield from _required(shown_by_function(name))


def _required(shown: Iterable[Shown]) -> Iterator[str]:
    """The names of the operators that always come; of those that all may be missing, the first."""
    shown = list(shown)
    for one in [one for one in shown if not one.is_optional] or shown[:1]:
        yield from one.names


def _of_subscript(node: ast.Subscript) -> Iterator[str]:
    """What an index that is no plain number, name or slice runs: a gather, or a write."""
    base = dotted_name(node.value).rpartition(".")[2]
    if base in _GENERIC or base[:1].isupper() or base == "shape":
        return
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not all(isinstance(index, (ast.Constant, ast.Slice)) for index in indices):
        yield "index_put_" if isinstance(node.ctx, ast.Store) else "index"
    elif isinstance(node.ctx, ast.Store):
        yield from ("copy_", "fill_")
    elif any(isinstance(index, ast.Slice) for index in indices):
        yield "slice"
    elif any(isinstance(index, ast.Constant) and isinstance(index.value, int) for index in indices):
        yield "select"


def _operators(keys: Mapping[str, float]) -> Iterator[str]:
    return (key.removeprefix("o:") for key in keys if key.startswith("o:"))


def _owner(node: ast.Call, index: FileIndex) -> ClassFacts | None:
    """The class whose `self` a method or layer is called on."""
    base = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not (isinstance(base, ast.Name) and base.id == "self"):
        return None
    function = index.file.function_at(node.lineno)
    return index.class_of(function) if function is not None else None


def _origin(node: ast.expr, index: FileIndex) -> str:
    return index.origins.get(node.id, "") if isinstance(node, ast.Name) else ""


def _is_loader(node: ast.expr, index: FileIndex) -> bool:
    """Whether a loop goes over batches: by its name, or what the variable was made by; through `enumerate` and such."""
    while isinstance(node, ast.Call) and node.args:
        if last_name(node.func) == "DataLoader":
            return True
        node = node.args[0]
    return bool(_LOADER.search(dotted_name(node))) or _origin(node, index).endswith("DataLoader")


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether an operator joins or formats text, or computes with literals only."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    texts = [isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str) for side in sides]
    return any(texts) or all(isinstance(side, ast.Constant) for side in sides)


def _numbers(node: ast.AST) -> frozenset[int]:
    """The whole numbers among a call's arguments, also in a tuple."""
    if not isinstance(node, ast.Call):
        return frozenset()
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    flat = [part for one in given for part in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    return frozenset(number for one in flat if (number := _whole(one)) is not None)


def _whole(node: ast.expr) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    return sign * value if isinstance(value, int) and not isinstance(value, bool) else None
