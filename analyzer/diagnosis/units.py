"""Units as people and models write them, each with what it measures and how much of that one of it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Measure(Enum):
    """What a figure measures: only figures of one measure can be equal."""

    TIME = "s"
    SHARE = "%"
    SIZE = "bytes"
    SIZE_RATE = "bytes/s"
    WORK = "operations"
    WORK_RATE = "operations/s"
    FACTOR = "x"
    COUNT = ""
    OTHER = "other"
    """Of which no evidence speaks: money, clock rates, power."""


@dataclass(frozen=True, slots=True)
class Unit:
    """`scale`: how many of the measure's own unit one of it is."""

    measure: Measure
    scale: float = 1.0


COUNT = Unit(Measure.COUNT)


def _all_units() -> dict[str, Unit]:
    times = {
        1e-9: "ns nanosecond nanoseconds",
        1e-6: "us µs μs usec microsecond microseconds",
        1e-3: "ms msec msecs millisecond milliseconds",
        1.0: "s sec secs second seconds",
        60.0: "min mins minute minutes",
        3600.0: "h hr hrs hour hours",
        86400.0: "day days",
    }
    units = {name: Unit(Measure.TIME, scale) for scale, names in times.items() for name in names.split()}
    units |= dict.fromkeys(("%", "percent", "per cent", "pct", "percentage points"), Unit(Measure.SHARE))
    units |= dict.fromkeys(("x", "×", "times", "fold"), Unit(Measure.FACTOR))
    units |= dict.fromkeys(("b", "byte", "bytes"), Unit(Measure.SIZE))
    for power, (short, long) in enumerate(
        (("k", "kilo"), ("m", "mega"), ("g", "giga"), ("t", "tera"), ("p", "peta")), 1
    ):
        decimal, binary = 1000.0**power, 1024.0**power
        for name, scale in ((f"{short}b", decimal), (f"{short}ib", binary)):
            units[name] = Unit(Measure.SIZE, scale)
            units[f"{name}/s"] = units[f"{name}ps"] = Unit(Measure.SIZE_RATE, scale)
        units[f"{long}byte"] = units[f"{long}bytes"] = Unit(Measure.SIZE, decimal)
        units[f"{short}flop"] = Unit(Measure.WORK, decimal)
        for name in (f"{short}flops", f"{short}flop/s", f"{short}flops/s"):
            units[name] = Unit(Measure.WORK_RATE, decimal)
    others = "hz khz mhz ghz w kw mw j kj v °c degrees week weeks month months year years dollars euros cents"
    return units | dict.fromkeys(others.split(), Unit(Measure.OTHER))


_UNITS = _all_units()
UNIT_PATTERN = "(?:" + "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True))) + r")(?!\w)"
"""Of a regular expression that ignores case: the longest unit that stands here, whole."""


def unit_of(name: str) -> Unit | None:
    """The unit of a name, in whatever case; None if it is none."""
    return _UNITS.get(name.lower())
