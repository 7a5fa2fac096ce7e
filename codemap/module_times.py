"""Time per step of each module, from what a trace holds: a recording run's ranges, or the calls of modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..analyzer.timeline.columns import distinct
from ..analyzer.timeline.feature_maps import feature_maps
from ..analyzer.timeline.model import Timeline
from ..analyzer.timeline.module_names import tagged_path
from ..analyzer.timeline.roots import MODULE_PREFIX
from ..analyzer.trace.model import NONE, Category, IntArray
from .building.roots import MOST_LEVELS
from .hotspots import Work
from .modules import Basis, Module, Shape, shape_of, share_pct

_NUMBER = re.compile(r"_\d+$")


@dataclass(slots=True)
class Called:
    """A module as its calls in a trace show it."""

    name: str
    """Class and number: `Conv2d_3`."""
    us_per_step: float
    calls_per_step: float
    inputs: tuple[Shape, ...] = ()
    outputs: tuple[Shape, ...] = ()
    children: list[Called] = field(default_factory=list)
    """In the order of their first calls."""

    @property
    def class_name(self) -> str:
        """The class's bare name."""
        return _NUMBER.sub("", self.name)


class ModuleTimes:
    """What one trace says of the modules that ran."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._steps = len(timeline.steps.steady)
        self._work = Work(timeline) if self._steps else None

    def by_path(self) -> Mapping[str, tuple[float, float]]:
        """Path of each tagged module (as recorded, "" for the root) -> time in µs and calls per step."""
        trace, work = self._timeline.trace, self._work
        rows = trace.rows(Category.USER_ANNOTATION)
        rows = rows[self._timeline.steps.are_steady(rows)]
        found: dict[str, list[IntArray]] = {}
        for name in distinct(trace.name[rows]).tolist():
            if path := tagged_path(trace.names[name]):
                found.setdefault("" if path == "." else path, []).append(rows[trace.name[rows] == name])
        if work is None:
            return {}
        joined = {path: np.concatenate(parts) for path, parts in found.items()}
        return {path: (work.us_in(part) / self._steps, len(part) / self._steps) for path, part in joined.items()}

    def calls(self) -> tuple[Called, ...]:
        """The outermost modules of the steady steps, each with those below it."""
        trace, tree, work = self._timeline.trace, self._timeline.tree, self._work
        rows = trace.rows(Category.PYTHON_FUNCTION)
        rows = rows[self._timeline.steps.are_steady(rows)]
        names = {n for n in distinct(trace.name[rows]).tolist() if trace.names[n].startswith(MODULE_PREFIX)}
        if work is None or not names:
            return ()
        rows = rows[np.isin(trace.name[rows], np.array(sorted(names)))]
        rows = rows[np.argsort(trace.ts_ns[rows], kind="stable")]
        maps = self._maps()
        made: dict[int, Called] = {}
        for name in names:
            own = rows[trace.name[rows] == name]
            shown = trace.names[name].removeprefix(MODULE_PREFIX)
            inputs, outputs = maps.get(shown, ((), ()))
            made[name] = Called(shown, work.us_in(own) / self._steps, len(own) / self._steps, inputs, outputs)
        tops: dict[int, Called] = {}
        level: dict[int, int] = {}
        placed: set[int] = set()
        is_module = set(names)
        for row in rows.tolist():
            name = int(trace.name[row])
            if name in placed:
                continue
            placed.add(name)
            outer = int(tree.python[int(tree.parent[row])]) if tree.parent[row] != NONE else NONE
            while outer != NONE and int(trace.name[outer]) not in is_module:
                above = int(tree.parent[outer])
                outer = int(tree.python[above]) if above != NONE else NONE
            holder = int(trace.name[outer]) if outer != NONE else NONE
            level[name] = 0 if holder == NONE else level.get(holder, 0) + 1
            if holder == NONE:
                tops[name] = made[name]
            elif holder != name and level[name] <= MOST_LEVELS:
                made[holder].children.append(made[name])
        return tuple(tops.values())

    def _maps(self) -> Mapping[str, tuple[tuple[Shape, ...], tuple[Shape, ...]]]:
        """Feature maps of the modules that call an operator themselves: the first input, the last output."""
        found: dict[str, tuple[tuple[Shape, ...], tuple[Shape, ...]]] = {}
        for one in feature_maps(self._timeline):
            given = found[one.module][0] if one.module in found else (shape_of(one.input_shape),)
            found[one.module] = (given, (shape_of(one.output_shape),) if one.output_shape else ())
        return found


def with_tagged_times(root: Module, times: Mapping[str, tuple[float, float]], first: str, step_us: float) -> Module:
    """The module tree with the times of tagged calls. `first` is what the model's paths begin with in the trace."""
    path = ".".join(part for part in (first, root.path) if part)
    us, calls = times.get(path, (None, None))
    return replace(
        root,
        us_per_step=us,
        step_pct=share_pct(us, step_us),
        calls_per_step=root.calls_per_step if calls is None else calls,
        children=tuple(with_tagged_times(child, times, first, step_us) for child in root.children),
    )


def with_called_times(root: Module, called: Called, step_us: float) -> Module:
    """The module tree with the times of the calls that a trace shows, matched by class and order."""
    matched: dict[str, Called] = {}
    _match(root, called, matched)
    return _timed(root, matched, step_us)


def _timed(module: Module, matched: Mapping[str, Called], step_us: float) -> Module:
    children = tuple(_timed(child, matched, step_us) for child in module.children)
    called = matched.get(module.path)
    if called is None:
        return replace(module, children=children)
    # Operators that a module with parts calls itself are not its output.
    is_measured = called.outputs and None not in called.outputs and not module.children
    return replace(
        module,
        us_per_step=called.us_per_step,
        step_pct=share_pct(called.us_per_step, step_us),
        calls_per_step=called.calls_per_step,
        inputs=called.inputs if is_measured else module.inputs,
        outputs=called.outputs if is_measured else module.outputs,
        children=children,
    )


def _match(module: Module, called: Called, matched: dict[str, Called]) -> None:
    """The calls below a call belong to the modules below the module: the nearest of the class, in calling order."""
    matched[module.path] = called
    candidates = sorted(_by_depth(module), key=lambda pair: (pair[0], _position(pair[1])))
    taken: set[str] = set()
    for inner in called.children:
        found = next(
            (one for _, one in candidates if one.class_name == inner.class_name and not _is_below(one.path, taken)),
            None,
        )
        if found is not None:
            taken.add(found.path)
            _match(found, inner, matched)


def _is_below(path: str, taken: set[str]) -> bool:
    return path in taken or any(path.startswith(f"{other}.") for other in taken)


def _position(module: Module) -> float:
    return float("inf") if module.call_order is None else module.call_order


def _by_depth(module: Module) -> Iterator[tuple[int, Module]]:
    """The modules below one with how deep they lie; a list of modules, which is never called, takes no level."""
    waiting = [(1, child) for child in module.children]
    while waiting:
        depth, current = waiting.pop(0)
        yield depth, current
        step = 0 if current.class_name in ("ModuleList", "ModuleDict") else 1
        waiting.extend((depth + step, child) for child in current.children)


def find_called(root: Module, tops: tuple[Called, ...]) -> Called | None:
    """The call of a model: the outermost one of its class, the longest of several."""
    level = list(tops)
    while level:
        fitting = [one for one in level if one.class_name == root.class_name]
        if fitting:
            return max(fitting, key=lambda one: one.us_per_step)
        level = [child for one in level for child in one.children]
    return None


def model_of_calls(called: Called, step_us: float, path: str = "") -> Module:
    """What a trace alone says of a model: classes, nesting, times."""
    children = tuple(
        model_of_calls(child, step_us, f"{path}.{child.name}" if path else child.name) for child in called.children
    )
    return Module(
        path=path,
        class_name=called.class_name,
        basis=Basis.TRACE,
        children=children,
        inputs=called.inputs,
        outputs=called.outputs,
        calls_per_step=called.calls_per_step,
        us_per_step=called.us_per_step,
        step_pct=share_pct(called.us_per_step, step_us),
    )
