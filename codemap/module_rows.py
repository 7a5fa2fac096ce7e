"""A model's tree line by line, repeated equal blocks folded into one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .modules import Module, Shape, Totals

_FRACTION = re.compile(r"-?\d*\.\d|-?\d+e-")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Row:
    """One module, or several equal ones in a row."""

    module: Module
    """The first of them."""
    label: str
    """Its name, or `0-11` for several."""
    count: int
    lead: str
    """The branches of the tree before it."""
    totals: Totals
    """Of all of them together, and of their like in the blocks that a row above folds."""
    us_per_step: float | None
    """Of all of them together."""
    step_pct: float | None


def rows_of(root: Module, *, folds: bool = True) -> Iterator[Row]:
    """The tree from its root down. Blocks are equal in class, parameters, sizes and everything below; what stands
    below a folded row counts for all its blocks as well."""
    yield _row([[root]], root.name, "")
    yield from _below([root], "", folds=folds)


def _below(blocks: Sequence[Module], lead: str, *, folds: bool) -> Iterator[Row]:
    """The children of equal blocks: those of one name are a column."""
    columns = [list(column) for column in zip(*(block.children for block in blocks), strict=True)]
    groups = list(_groups(columns, folds=folds))
    for at, group in enumerate(groups):
        is_last = at == len(groups) - 1 and not blocks[0].has_more
        first, last = group[0][0].name, group[-1][0].name
        yield _row(group, first if first == last else f"{first}-{last}", lead + ("└ " if is_last else "├ "))
        inner = [module for column in group for module in column]
        yield from _below(inner, lead + ("  " if is_last else "│ "), folds=folds)


def _row(group: Sequence[Sequence[Module]], label: str, lead: str) -> Row:
    modules = [module for column in group for module in column]
    totals = [module.totals() for module in modules]
    times = [module.us_per_step for module in modules if module.us_per_step is not None]
    shares = [module.step_pct for module in modules if module.step_pct is not None]
    return Row(
        module=modules[0],
        label=label,
        count=len(group),
        lead=lead,
        totals=Totals(
            sum(one.parameters for one in totals),
            sum(one.trainable for one in totals),
            sum(one.bytes for one in totals),
            all(one.is_whole for one in totals),
        ),
        us_per_step=sum(times) if times else None,
        step_pct=sum(shares) if shares else None,
    )


def _groups(columns: Sequence[list[Module]], *, folds: bool) -> Iterator[list[list[Module]]]:
    """Columns in order, equal neighbours together."""
    group: list[list[Module]] = []
    for column in columns:
        if group and folds and _are_numbered(group[-1][0], column[0]) and are_alike(group[-1][0], column[0]):
            group.append(column)
        else:
            if group:
                yield group
            group = [column]
    if group:
        yield group


def _are_numbered(one: Module, other: Module) -> bool:
    """Whether names differ in their number only: `3` and `4`, `layer3` and `layer4`."""
    return _NUMBER.sub("", one.name) == _NUMBER.sub("", other.name)


def are_alike(one: Module, other: Module) -> bool:
    """Whether two modules are the same but for their place and time."""
    if (one.class_name, one.is_certain, one.has_more, one.note) != (
        other.class_name,
        other.is_certain,
        other.has_more,
        other.note,
    ):
        return False
    if len(one.children) != len(other.children) or _sizes(one) != _sizes(other):
        return False
    below = zip(one.children, other.children, strict=True)
    return all(a.name == b.name and are_alike(a, b) for a, b in below)


def _sizes(module: Module) -> tuple[object, ...]:
    tensors = tuple((one.name, one.shape, one.dtype) for one in module.tensors)
    # Rates and factors (of drop path, by depth) make no other block of it.
    arguments = (
        tuple(one for one in module.arguments.items() if not _FRACTION.match(one[1])) if not module.children else ()
    )
    return tensors, module.outputs, arguments


def shape_text(shape: Shape) -> str:
    """`8x64x56x56`; "?" for a size that is not known, "" for a shape that is not."""
    if shape is None:
        return ""
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"


def shapes_text(shapes: Sequence[Shape], most: int) -> str:
    """The first of the shapes, those that are known; `...` stands for further ones."""
    known = [text for shape in shapes[:most] if (text := shape_text(shape))]
    return ", ".join(known) + (", ..." if known and len(shapes) > most else "")


def count_text(count: int, *, is_whole: bool = True) -> str:
    """`25.6 M`, `4.10 k`, `512`; with ">" before a figure that is a lower bound."""
    return _scaled(count, is_whole, ("", " k", " M", " G"))


def bytes_text(count: int, *, is_whole: bool = True) -> str:
    """`102 MB`, in powers of ten."""
    return _scaled(count, is_whole, (" B", " kB", " MB", " GB"))


def _scaled(count: int, is_whole: bool, units: Sequence[str]) -> str:
    value, at = float(count), 0
    while value >= 999.5 and at < len(units) - 1:
        value, at = value / 1000.0, at + 1
    number = str(count) if at == 0 else f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}".rstrip(".")
    return f"{'' if is_whole else '>'}{number}{units[at]}"
