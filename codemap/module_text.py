"""A model's structure as compact text, for a language model's prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from ..analyzer.figures import format_ms, place_text
from .building.layers import bind_layer, layer_name
from .building.signatures import Arguments
from .module_rows import Row, count_text, rows_of, shapes_text
from .module_source import text_of
from .modules import At, Model, Module

_DULL = frozenset(("device", "dtype", "inplace", "args", "kwargs", "modules"))
"""Arguments that say nothing of what is computed, or what stands below says better."""
_MOST_ARGUMENTS = 8
_MOST_CONNECTIONS = 60


def architecture_text(model: Model, most_lines: int = 200) -> str:
    """The model in a line for each module, and the connections that the order of the lines does not tell.

    `stem.0 Conv2d(in_channels=3, out_channels=64) -> 8x64x112x112; 9.41 k; 1.2 ms; model.py:31`: path, class with its
    arguments, output, parameters, time per step, where it is built. Equal blocks stand once, with their number.
    """
    lines = [_line(row, model.root) for row in rows_of(model.root)]
    left_out = len(lines) - most_lines
    if left_out > 0:
        lines = [*lines[:most_lines], f"... {left_out} more"]
    connections = [f"{start} -> {', '.join(ends)}" for start, ends in branches(model.root).items()]
    if connections:
        lines += ["connections besides one module to the next:", *connections[:_MOST_CONNECTIONS]]
    if len(connections) > _MOST_CONNECTIONS:
        lines.append(f"... {len(connections) - _MOST_CONNECTIONS} more")
    return "\n".join(lines) + "\n"


def _line(row: Row, root: Module) -> str:
    module = row.module
    path = module.path or "(model)"
    if row.count > 1:
        path = f"{module.path.rpartition('.')[0]}.{row.label}".lstrip(".") + f" x {row.count}"
    parts = [f"{path} {module.class_name}{arguments_text(module)}{output_text(module)}"]
    if row.totals.parameters or module.note:
        parts.append(count_text(row.totals.parameters, is_whole=row.totals.is_whole))
    if row.us_per_step is not None:
        parts.append(f"{format_ms(row.us_per_step)} ms")
    if module.built_at is not None and (module is root or module.built_at != root.built_at):
        parts.append(where_text(module.built_at))
    if not module.is_certain:
        parts.append("not certain")
    if module.has_more:
        parts.append("more of unknown number")
    if module.note:
        parts.append(module.note)
    return "; ".join(parts)


def arguments_text(module: Module) -> str:
    """The arguments that say most of it, in parentheses; "" without any. A layer's defaults are left out."""
    layer = layer_name(module.origin)
    defaults = _defaults(layer) if layer else {}
    told = [
        f"{name}={text}"
        for name, text in module.arguments.items()
        if name not in _DULL and text != "None" and text not in (defaults.get(name), f"({defaults.get(name)},)")
    ]
    return f"({', '.join(told[:_MOST_ARGUMENTS])}{', ...' if len(told) > _MOST_ARGUMENTS else ''})" if told else ""


@lru_cache(maxsize=256)
def _defaults(layer: str) -> Mapping[str, str]:
    return {name: text_of(value) for name, value in bind_layer(layer, Arguments()).items()}


def output_text(module: Module) -> str:
    """` -> 8x64x56x56`; "" where no output is known."""
    text = shapes_text(module.outputs, 3)
    return f" -> {text}" if text else ""


def where_text(at: At) -> str:
    """`model.py:31`; of a notebook's cell in words."""
    return place_text(at.path, at.line, cell=at.cell)


def branches(root: Module) -> Mapping[str, tuple[str, ...]]:
    """Connections among siblings that skip one: path -> the modules that get its output besides the next one."""
    return dict(_branches(root))


def _branches(module: Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    parts = list(_called_by(module))
    parts.sort(key=lambda part: part.call_order or 0)
    following = {one.path: other.path for one, other in pairwise(parts)}
    paths = {part.path for part in parts}
    for part in parts:
        ends = tuple(path for path in part.feeds if path in paths and path != following.get(part.path))
        if ends:
            yield part.path, ends
    for part in parts:
        yield from _branches(part)


def _called_by(module: Module) -> Iterator[Module]:
    """The modules that a module calls itself: those of a list that is not called count as its own."""
    for child in module.children:
        if child.call_order is not None:
            yield child
        else:
            yield from _called_by(child)
