"""Time per step of each module where a trace holds no module calls: from operators placed on their lines.

The calls of layers that the source makes at a statement, and the operators that are placed there, come in one order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..analyzer.findings import Grain, Location
from ..analyzer.timeline.model import Timeline
from ..analyzer.timeline.select import in_typical_step, outermost_forward
from .hotspots import Work
from .locate import Locator
from .modules import Module, Shape, shape_of, share_pct

_OPERATORS = (
    ("Conv", "conv"),
    ("Linear", "linear|addmm|matmul|mm$"),
    ("LayerNorm", "layer_norm"),
    ("RMSNorm", "rms_norm"),
    ("BatchNorm", "batch_norm"),
    ("GroupNorm", "group_norm"),
    ("InstanceNorm", "instance_norm"),
    ("Embedding", "embedding"),
    ("MultiheadAttention", "multi_head|scaled_dot|linear|matmul|bmm|softmax"),
    ("MaxPool", "max_pool"),
    ("AvgPool", "avg_pool"),
    ("AdaptiveAvgPool", "adaptive_avg_pool|mean"),
    ("LSTM", "lstm"),
    ("GRU", "gru"),
    ("ReLU6", "hardtanh|relu6|clamp"),
    ("ReLU", "relu"),
    ("SiLU", "silu"),
    ("GELU", "gelu"),
    ("Hardswish", "hardswish"),
    ("Sigmoid", "sigmoid"),
    ("Tanh", "tanh"),
    ("Softmax", "softmax"),
    ("Dropout", "dropout|bernoulli"),
    ("Upsample", "upsample"),
    ("PReLU", "prelu"),
    ("Flatten", "flatten|reshape|view"),
    ("PixelShuffle", "pixel_shuffle"),
)
"""Start of a layer's name -> the operator that it calls; the first that fits holds."""
_PATTERNS = tuple((kind, re.compile(f"^aten::_?(?:native_|cudnn_)?(?:{names})")) for kind, names in _OPERATORS)
_LEAST_FOUND = 0.5
"""Share of a model's layer calls that must find their operators for it to be the model that ran."""


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """One call of a layer in the source."""

    module: str
    """Its path in the model."""
    class_name: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Placed:
    """Times of a model's modules by path, and how many of its layer calls found their operators."""

    us_per_step: Mapping[str, float]
    found_pct: float
    first_input: Shape
    """What the first layer that was found was given; most likely what went into the model."""


class PlacedOperators:
    """The operators of the typical step with their places."""

    def __init__(self, timeline: Timeline, locator: Locator) -> None:
        work = Work(timeline)
        rows = in_typical_step(timeline, outermost_forward(timeline)).tolist()
        self._trace = timeline.trace
        self._rows: list[int] = []
        self._operators: list[tuple[str, Location, float]] = []
        for row in rows:
            place = locator.locate(row)
            if place is not None and place.location.grain is Grain.LINE:
                us = work.us_in(np.array([row], dtype=np.int64))
                self._rows.append(row)
                self._operators.append((timeline.trace.name_of(row), place.location, us))

    def times(self, root: Module, calls: Sequence[PlacedCall]) -> Placed | None:
        """The times of one model's modules; None if it does not look like what ran."""
        if not calls or not self._operators:
            return None
        holders = self._layers(calls)
        found = len(set(holders.values())) / len(calls)
        if found < _LEAST_FOUND:
            return None
        modules = {module.path: module for module in root.walk()}
        own: dict[str, float] = {}
        last = ""
        for at, (_, location, us) in enumerate(self._operators):
            path: str | None = None
            if at in holders:
                path = last = calls[holders[at]].module
            else:
                path = _within(modules, last, location.qualname)
            if path is not None:
                own[path] = own.get(path, 0.0) + us
        return Placed(own, 100.0 * found, self._input_of(min(holders)))

    def _input_of(self, at: int) -> Shape:
        return shape_of(self._trace.inputs_of(self._rows[at]).shape(0)) or None

    def _layers(self, calls: Sequence[PlacedCall]) -> dict[int, int]:
        """Operator -> the layer call that it is, statement by statement in order; a further pass begins anew."""
        holders: dict[int, int] = {}
        reached: dict[tuple[str, int], int] = {}
        sites: dict[tuple[str, int], list[int]] = {}
        for at, (name, location, _) in enumerate(self._operators):
            key = location.path, location.line
            if key not in sites:
                sites[key] = [
                    n
                    for n, call in enumerate(calls)
                    if call.path == location.path and location.line <= call.line <= location.end_line
                ]
            here = sites[key]
            start = reached.get(key, 0)
            for step in range(len(here)):
                position = (start + step) % len(here)
                if _calls(calls[here[position]].class_name, name):
                    holders[at] = here[position]
                    reached[key] = position + 1
                    break
        return holders


def _calls(class_name: str, operator: str) -> bool:
    pattern = next((pattern for kind, pattern in _PATTERNS if class_name.startswith(kind)), None)
    return pattern is not None and pattern.match(operator) is not None


def _within(modules: Mapping[str, Module], last: str, qualname: str) -> str | None:
    """The module whose method an operator is called in: of those round the layer called before it, the nearest."""
    owner = qualname.rpartition(".")[0].rpartition(".")[2]
    for path in _upwards(last):
        module = modules.get(path)
        if module is None:
            continue
        if module.class_name == owner:
            return path
        beside = next((child.path for child in module.children if child.class_name == owner), None)
        if beside is not None:
            return beside
    return None


def _upwards(path: str) -> Iterator[str]:
    yield path
    while path:
        path = path.rpartition(".")[0]
        yield path


def with_placed_times(root: Module, own: Mapping[str, float], step_us: float) -> Module:
    """The module tree with times: each module's own operators and those of all below it."""
    children = tuple(with_placed_times(child, own, step_us) for child in root.children)
    parts = [child.us_per_step for child in children if child.us_per_step is not None]
    if root.path in own:
        parts.append(own[root.path])
    us = sum(parts) if parts else None
    return replace(root, children=children, us_per_step=us, step_pct=share_pct(us, step_us))
