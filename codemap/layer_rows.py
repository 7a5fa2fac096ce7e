"""The model's structure as a dossier tells it: the layers that take most, with sizes and shares of the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..analyzer.diagnosis.dossier import LayerRow
from ..analyzer.diagnosis.text import name
from ..analyzer.timeline.feature_maps import FeatureMap, feature_maps
from ..analyzer.timeline.memo import once
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import Dims
from ..analyzer.trace.recording import RecordedModule
from .hotspots import Work
from .module_recording import parent_of, usable
from .module_rows import Row, rows_of
from .module_times import Called, ModuleTimes, model_of_calls
from .modules import Basis, Module, Shape, share_pct

MOST_LAYERS = 14
_WITHOUT_SIZES = 0.3
"""What a module counts beside one whose sizes are known: the call tree shows it, too."""


@once
def layer_rows(timeline: Timeline) -> tuple[LayerRow, ...]:
    """The dearest layers in the order of the model, at most `MOST_LAYERS`.

    Modules as a recording run saw them, else as the trace's module calls show them, else what the operators' shapes
    tell. Equal neighbours are one row. Empty where the trace holds none of these.
    """
    rows = [row for root in _roots(timeline) for row in rows_of(root)]
    if not rows:
        return _of_operators(timeline)
    kept = sorted(sorted(range(len(rows)), key=lambda at: -_weight(rows[at]))[:MOST_LAYERS])
    found: list[LayerRow] = []
    path: list[int] = []
    for number, at in enumerate(kept, 1):
        row, level = rows[at], len(rows[at].lead) // 2
        while path and path[-1] >= level:
            path.pop()
        given, made = _whole(row.module.inputs[:1]), _whole(row.module.outputs[-1:])
        found.append(LayerRow(f"l{number}", len(path), _name(row), given, made, _rounded(row.step_pct)))
        path.append(level)
    return tuple(found)


def _roots(timeline: Timeline) -> Iterator[Module]:
    """Whole models with times; those that take no time are left out."""
    times = ModuleTimes(timeline)
    recording = timeline.trace.recording
    if recording is not None and recording.modules and (by_path := times.by_path()):
        yield from recorded_trees(recording.modules, {path: us for path, (us, _) in by_path.items()}, timeline.step_us)
        return
    for called in times.calls():
        yield model_of_calls(_by_class(called, called.class_name), timeline.step_us, called.class_name)


def _by_class(called: Called, shown: str) -> Called:
    """Calls numbered within what holds them, not throughout the model: equal blocks are alike then."""
    numbers: dict[str, int] = {}
    children: list[Called] = []
    for child in called.children:
        number = numbers[child.class_name] = numbers.get(child.class_name, -1) + 1
        children.append(_by_class(child, f"{child.class_name}_{number}"))
    return replace(called, name=shown, children=children)


def recorded_trees(modules: Sequence[RecordedModule], us_of: dict[str, float], step_us: float) -> Iterator[Module]:
    """The recorded modules as trees, without those that no model can have: see `module_recording.usable`."""
    by_path, _, _ = usable(modules)
    below: dict[str | None, list[RecordedModule]] = {}
    for module in by_path.values():
        below.setdefault(parent_of(module.path, by_path), []).append(module)

    def made(module: RecordedModule) -> Module:
        us = us_of.get(module.path)
        return Module(
            path=module.path,
            class_name=module.class_name,
            basis=Basis.RECORDING,
            children=tuple(made(child) for child in below.get(module.path, ())),
            inputs=module.inputs,
            outputs=module.outputs,
            us_per_step=us,
            step_pct=share_pct(us, step_us),
        )

    for top in below.get(None, ()):
        yield made(top)


def _of_operators(timeline: Timeline) -> tuple[LayerRow, ...]:
    """Operators of one kind and size together."""
    groups: dict[tuple[str, Dims, Dims], list[FeatureMap]] = {}
    for one in feature_maps(timeline):
        groups.setdefault((one.op, one.input_shape, one.output_shape), []).append(one)
    if not groups:
        return ()
    work = Work(timeline)
    shares = {
        key: share_pct(work.us_in(np.array([one.row for one in ones])), timeline.step_us)
        for key, ones in groups.items()
    }
    dearest = sorted(groups, key=lambda key: -(shares[key] or 0.0))[:MOST_LAYERS]
    shown = [key for key in groups if key in dearest]
    return tuple(
        LayerRow(f"l{number}", 0, _times(name(key[0]), len(groups[key])), key[1], key[2], _rounded(shares[key]))
        for number, key in enumerate(shown, 1)
    )


def _weight(row: Row) -> float:
    has_sizes = bool(row.module.outputs or row.module.inputs)
    return (row.step_pct or 0.0) * (1.0 if has_sizes else _WITHOUT_SIZES)


def _name(row: Row) -> str:
    """`layer1.0-2 (Bottleneck) x3`; a name that says the class stands alone."""
    module = row.module
    if module.basis is Basis.TRACE:
        return _times(name(module.class_name), row.count)
    where = ".".join(part for part in (module.path.rpartition(".")[0], row.label) if part)
    return _times(name(f"{where} ({module.class_name})" if where else module.class_name), row.count)


def _times(text: str, count: int) -> str:
    return f"{text} x{count}" if count > 1 else text


def _whole(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The sizes of the first shape if all are known."""
    sizes = shapes[0] if shapes and shapes[0] else ()
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else ()


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 2)
