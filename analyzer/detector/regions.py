"""Names of regions for people: the phase, and the modules, ranges or operators that it runs."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from ..timeline.model import Phase, Timeline
from ..timeline.module_names import tagged_path
from ..timeline.roots import MODULE_PREFIX
from ..trace.model import NONE, Category, IntArray
from .grouping import Parts
from .units import Units

_PHASES = {Phase.DATA: "data", Phase.FORWARD: "forward", Phase.BACKWARD: "backward", Phase.OPTIMIZER: "optimizer"}
_LONGEST = 40
"""Characters of one name."""
_LONGEST_READ = 500
"""Characters of a name that are looked at: searching one of thousands for a frame takes long, and it is none."""
_TELLING = 0.1
"""Share of a region from which a part is worth naming."""
_FRAME = re.compile(r"(?P<file>[^/\\]*\.py)\((?P<line>\d+)\): (?P<function>.+)$")
_BUILT_IN = re.compile(r"^<built-in (?:method|function) (?P<function>\w+)")
_NAMESPACE = re.compile(
    r"^autograd::engine::evaluate_function: |^torch::autograd::|^(?:aten|prims?|c10d)::|^Optimizer\.\w+#"
)
_LOADER = re.compile(r"^enumerate\(DataLoader\)#.*")


def region_names(timeline: Timeline, units: Units, order: IntArray, parts: Parts, region: IntArray) -> list[str]:
    """The name of each region. `order`: the parts that are units; `parts` and `region` of each of them, in order."""
    first = np.flatnonzero(np.diff(region, prepend=NONE))
    last = np.append(first[1:], len(region)) - 1
    extent = _extents(units, order)
    names: list[str] = []
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        share, source = parts.share[begin : end + 1], parts.forward[begin : end + 1]
        phase = Phase(int(parts.phase[begin + int(np.argmax(share))]))
        known = source != NONE
        # A backward region is called as its forward one, which came before and has its name already.
        of = int(np.bincount(region[source[known]], weights=share[known]).argmax()) if known.any() else len(names)
        if phase is Phase.BACKWARD and of < len(names):
            names.append(f"backward: {names[of].split(': ', 1)[-1]}")
            continue
        telling = begin + np.flatnonzero(share >= _TELLING * share.max())
        ends = [_enclosing(timeline, units, extent, int(order[at]), begin, end) for at in (telling[0], telling[-1])]
        text = _between(timeline, units, *ends)
        names.append(f"{_PHASES[phase]}: {text}" if phase in _PHASES else text)
    return _told_apart(names)


def _extents(units: Units, order: IntArray) -> tuple[IntArray, IntArray]:
    """Shape (parts,): the places in `order` of the first and the last unit in each part."""
    first, last = np.full(len(units.parent), len(order)), np.full(len(units.parent), NONE)
    part, place = order, np.arange(len(order))
    while len(part):
        np.minimum.at(first, part, place)
        np.maximum.at(last, part, place)
        above = units.parent[part]
        part, place = above[above != NONE], place[above != NONE]
    return first, last


def _enclosing(
    timeline: Timeline, units: Units, extent: tuple[IntArray, IntArray], part: int, begin: int, end: int
) -> int:
    """The outermost module or range round a part that lies within a region, between places; else the part."""
    found, current = part, int(units.parent[part])
    while current != NONE and extent[0][current] >= begin and extent[1][current] <= end:
        found = current if _is_telling(timeline, int(units.example[current])) else found
        current = int(units.parent[current])
    return found


def _between(timeline: Timeline, units: Units, first: int, last: int) -> str:
    """From one part to another; what is no module or range itself is told with the one round it."""
    text = short_name(timeline, int(units.example[first]))
    if last != first and (other := short_name(timeline, int(units.example[last]))) != text:
        text = f"{text} … {other}"
    parent = first
    while parent != NONE and not _is_telling(timeline, int(units.example[parent])):
        parent = int(units.parent[parent])
    return text if parent in (NONE, first) else f"{short_name(timeline, int(units.example[parent]))} ({text})"


def _is_telling(timeline: Timeline, row: int) -> bool:
    """Whether the name of an event tells people where it is: a module or a range."""
    trace = timeline.trace
    return trace.cat[row] == Category.USER_ANNOTATION or trace.name_of(row).startswith(MODULE_PREFIX)


def short_name(timeline: Timeline, row: int) -> str:
    """The name of an event without what only machines need."""
    name = timeline.trace.name_of(row)
    if path := tagged_path(name):
        return path
    name = name[:_LONGEST_READ]
    name = _NAMESPACE.sub("", _LOADER.sub("DataLoader", name.removeprefix(MODULE_PREFIX)))
    if found := _FRAME.search(name):
        name = f"{found['function']} ({found['file']}:{found['line']})"
    elif found := _BUILT_IN.search(name):
        name = found["function"]
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _told_apart(names: list[str]) -> list[str]:
    """The names, numbered where several are the same."""
    total, seen = Counter(names), Counter()
    for index, name in enumerate(names):
        seen[name] += 1
        names[index] = f"{name} #{seen[name]}" if total[name] > 1 else name
    return names
