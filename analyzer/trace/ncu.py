"""Nsight Compute's CSV -> counters of kernel launches.

    ncu --csv --page raw --metrics dram__bytes_read.sum,... python train.py > counters.csv

Four layouts are read: the details page (a line per launch and metric), the raw page (a line per launch, the units in a
line of their own below the header), the raw page as the program's window exports it (units in the header, as in
`name [unit]`), and `--print-summary per-kernel` (a line per kernel and metric). What the profiled program printed in
between is passed over.

Values are brought to bytes, nanoseconds, per cent and plain counts. Of the details page's titles only those that stand
for one known metric are taken.
"""

from __future__ import annotations

import csv
import math
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .counters import CounterTable, Measured, to_table
from .limits import TraceError

MOST_BYTES = 512 << 20
MOST_LINES = 5_000_000
MOST_COLUMNS = 20_000

_KERNEL, _ID, _METRIC, _UNIT, _VALUE, _AVERAGE = (
    "Kernel Name", "ID", "Metric Name", "Metric Unit", "Metric Value", "Average",
)  # fmt: skip
_INVOCATIONS = "Invocations"
_UNIT_IN_HEADER = re.compile(r"^(\S+)\s+\[([^\[\]]*)\]$")
_MOST_INVOCATIONS = 100_000

TITLES: dict[tuple[str, str], str] = {
    ("Duration", "second"): "gpu__time_duration.sum",
    ("L2 Hit Rate", "%"): "lts__t_sector_hit_rate.pct",
    ("DRAM Throughput", "%"): "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ("Memory Throughput", "byte/second"): "dram__bytes.sum.per_second",
    ("Achieved Occupancy", "%"): "sm__warps_active.avg.pct_of_peak_sustained_active",
}
"""The metric that a title of the details page stands for, by title and base unit."""

_SCALES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_UNIT_FORM = re.compile(r"^([numKkMGTP]?)(byte|second|s|inst|sector|cycle|hz|Hz|thread|request|warp)(?:/(second|s))?$")
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class _Unit:
    base: str
    factor: float


def read_ncu(path: Path) -> CounterTable:
    """The counters in a file of Nsight Compute's. Raises `TraceError` if there are none that can be read."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise TraceError(f"{path}: not a regular file")
        if info.st_size > MOST_BYTES:
            raise TraceError(f"{path}: larger than {MOST_BYTES:,} bytes")
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            table = to_table("ncu", list(parse_ncu(file)))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    if not len(table):
        raise TraceError(f"{path}: no counters of kernels; it must be CSV of Nsight Compute (`ncu --csv`), no .ncu-rep")
    return table


def parse_ncu(lines: Iterable[str]) -> Iterator[Measured]:
    """Each launch with its metrics, in the order of launch. Lines that are no part of a table are passed over."""
    rows = _rows(lines)
    for row in rows:
        if _KERNEL in row and len(row) <= MOST_COLUMNS:
            header = [title.strip() for title in row]
            if _METRIC in header:
                yield from _by_line(header, rows)
            else:
                yield from _by_column(header, rows)


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Each line by itself, so that a quote left open costs one line and not the rest of the file."""
    for line in islice(lines, MOST_LINES):
        text = line.replace("\0", "").strip()
        if text.startswith('"') or _KERNEL in text or text[:1].isdigit():
            try:
                yield from csv.reader([text])
            except csv.Error:
                continue


def _by_line(header: list[str], rows: Iterable[list[str]]) -> Iterator[Measured]:
    """One line per launch and metric."""
    at = {title: place for place, title in enumerate(header)}
    value_at = at.get(_VALUE, at.get(_AVERAGE))
    if value_at is None:
        return
    keys = [at[title] for title in ("Process ID", _ID, _KERNEL) if title in at]
    launches: dict[tuple[str, ...], dict[str, float]] = {}
    times: dict[tuple[str, ...], int] = {}
    for row in rows:
        if len(row) <= max(*keys, at[_METRIC], value_at) or not row[at[_KERNEL]].strip() or row == header:
            continue
        key = tuple(row[place] for place in keys)
        unit = _unit(row[at[_UNIT]] if _UNIT in at and len(row) > at[_UNIT] else "")
        name = _metric(row[at[_METRIC]].strip(), unit)
        number = _number(row[value_at])
        metrics = launches.setdefault(key, {})
        if _INVOCATIONS in at and len(row) > at[_INVOCATIONS]:
            times[key] = _invocations(row[at[_INVOCATIONS]])
        if name and not math.isnan(number):
            metrics.setdefault(name, number * unit.factor)
    for key, metrics in launches.items():
        for _ in range(times.get(key, 1)):
            yield Measured(key[-1], metrics)


def _by_column(header: list[str], rows: Iterable[list[str]]) -> Iterator[Measured]:
    """One line per launch; units stand in the header or in the first line below it."""
    kernel_at = header.index(_KERNEL)
    titles = [(match.group(1), match.group(2)) if (match := _UNIT_IN_HEADER.match(t)) else (t, "") for t in header]
    units = [_unit(unit) for _, unit in titles]
    columns = [(place, name) for place, (name, _) in enumerate(titles) if "__" in name]
    for row in rows:
        if len(row) != len(header) or row == header:
            continue
        if not row[kernel_at].strip():
            units = [_unit(text.strip()) for text in row]
            continue
        numbers = ((name, _number(row[place]) * units[place].factor) for place, name in columns)
        yield Measured(row[kernel_at], {name: number for name, number in numbers if not math.isnan(number)})


def _unit(text: str) -> _Unit:
    """The base of a unit and what a value in it is to be multiplied with; times come out in nanoseconds."""
    match = _UNIT_FORM.match(text.strip())
    if match is None:
        return _Unit(text.strip(), 1.0)
    prefix, base, per = match.groups()
    is_time = base in ("second", "s")
    scale = _SCALES[prefix] * (_NS_PER_S if is_time and per is None else 1.0)
    return _Unit(("second" if is_time else base.lower()) + ("/second" if per else ""), scale)


def _metric(name: str, unit: _Unit) -> str:
    """The metric's name; "" for a title that stands for none that is known."""
    return name if "__" in name else TITLES.get((name, unit.base), "")


def _number(text: str) -> float:
    """`1,234.5`; NaN for `n/a`, for "no value" and for anything that is not finite."""
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _invocations(text: str) -> int:
    number = _number(text)
    return 1 if math.isnan(number) else max(1, min(int(number), _MOST_INVOCATIONS))
