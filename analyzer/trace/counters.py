"""Hardware counters of kernel launches: `cuda_profiler_range` events of a trace, or what was measured in another run.

Kineto in CUPTI's range mode writes an event of this category for every kernel launch, whose `args` are the metrics by
their CUPTI names. The reader of events knows only fixed names, so these few events are decoded once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from .recording import LaunchCounters

MARK = b"cuda_profiler_range"
"""What a part of a document must hold to be worth a second look."""
UNNAMED = "__missing__"
"""The name that Kineto gives ranges whose kernel it has lost."""
MOST_METRICS = 256
"""A range has some tens; more is nobody's measurement."""
MOST_KERNELS = 20_000
"""Distinct names; programs have some thousands at most. Launches of any further ones are left out."""
_NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class CounterTable:
    """One row per measured launch of a kernel, in the order of launch. Arrays have shape (m,) unless said otherwise."""

    source: str = ""
    """"trace" (ranges in the trace), "recording" (a pass of the recording run), "ncu" (a file); "" if there is none."""
    kernels: tuple[str, ...] = ()
    """Distinct kernel names."""
    kernel: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """Index into `kernels`."""
    position: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Position of the range in the file's `traceEvents`; -1 where it was measured elsewhere."""
    metrics: tuple[str, ...] = ()
    """Names as CUPTI and Nsight Compute write them."""
    values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """Shape (m, metrics): bytes, ns, per cent or plain counts; NaN where a launch has no such figure."""

    def __len__(self) -> int:
        return len(self.kernel)


NO_COUNTERS = CounterTable()


class _RangeEvent(msgspec.Struct, gc=False):
    ph: Any = None
    cat: Any = None
    name: Any = None
    args: Any = None


_RANGES = msgspec.json.Decoder(list[_RangeEvent])


@dataclass(frozen=True, slots=True)
class Measured:
    """One launch as it was read."""

    kernel: str
    metrics: Mapping[str, float]
    position: int = _NOWHERE


def ranges_in(text: bytes, first: int) -> list[Measured]:
    """The counter ranges in `text`, JSON objects parted by commas, of which the first is number `first` in the file."""
    if MARK not in text:
        return []
    try:
        events = _RANGES.decode(b"[%b]" % text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return []
    return [
        Measured(str(event.name), _metrics(event.args), first + place)
        for place, event in enumerate(events)
        if event.ph == "X" and isinstance(event.cat, str) and event.cat.lower() == MARK.decode()
    ]


def _metrics(args: object) -> dict[str, float]:
    """What of an event's `args` is a metric: CUPTI's names hold two underscores, the profiler's own fields don't."""
    if not isinstance(args, dict):
        return {}
    numbers = {
        name: float(value)
        for name, value in args.items()
        if "__" in name and isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def to_table(source: str, launches: Sequence[Measured]) -> CounterTable:
    """Columns of what was measured; `NO_COUNTERS` if that is nothing."""
    names = tuple(dict.fromkeys(name for launch in launches for name in launch.metrics))[:MOST_METRICS]
    if not names:
        return NO_COUNTERS
    kernels = tuple(dict.fromkeys(launch.kernel for launch in launches))[:MOST_KERNELS]
    number = {kernel: k for k, kernel in enumerate(kernels)}
    launches = [launch for launch in launches if launch.kernel in number]
    values = [[launch.metrics.get(name, math.nan) for name in names] for launch in launches]
    return CounterTable(
        source=source,
        kernels=kernels,
        kernel=np.array([number[launch.kernel] for launch in launches], dtype=np.int32),
        position=np.array([launch.position for launch in launches], dtype=np.int64),
        metrics=names,
        values=np.array(values, dtype=np.float64),
    )


def from_recording(counters: LaunchCounters) -> CounterTable:
    """The table that a recording's file holds; `NO_COUNTERS` if there is none or its columns don't fit together."""
    launches = len(counters.kernel)
    fits = (
        len(counters.values) == len(counters.metrics)
        and all(len(column) == launches for column in counters.values)
        and all(0 <= kernel < len(counters.kernels) for kernel in counters.kernel)
        and len(counters.kernels) <= MOST_KERNELS
    )
    if not launches or not counters.metrics or not fits:
        return NO_COUNTERS
    return CounterTable(
        source="recording",
        kernels=counters.kernels,
        kernel=np.array(counters.kernel, dtype=np.int32),
        position=np.full(launches, _NOWHERE, dtype=np.int64),
        metrics=counters.metrics,
        values=np.array([_floats(column) for column in counters.values], dtype=np.float64).T,
    )


def for_recording(table: CounterTable) -> LaunchCounters:
    """`table` as a part of a recording's file."""
    columns = (tuple(None if math.isnan(v) else v for v in column) for column in table.values.T.tolist())
    return LaunchCounters(table.kernels, tuple(table.kernel.tolist()), table.metrics, tuple(columns))


def _floats(column: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in column]
