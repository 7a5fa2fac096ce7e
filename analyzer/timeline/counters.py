"""Hardware counters joined to the kernels they were measured on: DRAM bytes, L2 hits, use of the tensor cores.

Counters slow a kernel down or run it several times, so they come from launches of their own: a pass of the recording
run, a run under Nsight Compute, or ranges in a trace that then has no kernel events. They are joined by name. Where the
launches of one name that were measured are those of one or several whole steps, they are joined in their order; else
every launch gets the mean of its name's. Ranges in the trace itself are joined to the launching calls, one to each.

Metrics by the names of CUPTI and Nsight Compute (NVIDIA, "Kernel Profiling Guide", section "Metrics Reference").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ..trace.counters import UNNAMED, CounterTable
from ..trace.model import NONE, Category, FloatArray, Int32Array, IntArray
from .columns import is_named
from .memo import once
from .model import Timeline
from .select import us_per_step

SECTOR_BYTES = 32


class Figure(IntEnum):
    """What is made of the metrics, as a column number."""

    DRAM_BYTES = 0
    """Read and written."""
    L2_HIT_PCT = 1
    TENSOR_PCT = 2
    """Share of the cycles in which the tensor pipe was active."""
    TENSOR_INSTRUCTIONS = 3
    FLOPS = 4
    """Of the plain cores: additions, multiplications and, twice, multiply-adds, by thread."""
    DURATION_NS = 5
    """Under measurement: with the clocks fixed and the caches flushed, unless told otherwise."""


_LAUNCH = re.compile(r"^(?:cuda|cu|hip)(?:Launch\w*Kernel|ModuleLaunchKernel)")


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The figures of each row. A row is a kernel, or the launching call where the trace has no kernels."""

    rows: IntArray
    """Rows that counters were found for, in time order; shape (k,)."""
    values: FloatArray
    """Shape (k, len(Figure)); NaN where not measured."""


@dataclass(frozen=True, slots=True)
class KernelCounters:
    """A kernel's figures: means over its measured launches; NaN where not measured."""

    kernel: str
    launches: int
    us_per_step: float
    """From the trace, without counters; NaN where it has no such kernel."""
    dram_bytes: float
    dram_gb_per_s: float
    """By the time in the trace, else by that under measurement."""
    l2_hit_pct: float
    tensor_pct: float
    tensor_instructions: float
    flops: float


@once
def counted(timeline: Timeline) -> Counted:
    """Counters by row of the trace."""
    trace, table = timeline.trace, timeline.trace.counters
    nothing = Counted(np.empty(0, dtype=np.int64), np.empty((0, len(Figure))))
    if not len(table):
        return nothing
    values = figures(table)
    if table.source == "trace":
        launches = trace.rows(Category.RUNTIME)
        launches = launches[is_named(trace, launches, _LAUNCH.match)]
        return Counted(launches, values) if len(launches) == len(table) else nothing
    rows = trace.rows(Category.KERNEL)
    joined = np.full((len(rows), len(Figure)), np.nan)
    for members, launches, in_order_only in _same_kernels(timeline, rows, table):
        _give(timeline, joined, rows, members, values[launches], in_order_only=in_order_only)
    known = ~np.isnan(joined).all(axis=1)
    return Counted(rows[known], joined[known])


@once
def kernel_counters(timeline: Timeline) -> tuple[KernelCounters, ...]:
    """One entry per measured kernel, what takes longest (else what moves most) first."""
    trace, table = timeline.trace, timeline.trace.counters
    if not len(table):
        return ()
    values = figures(table)
    kernels = trace.rows(Category.KERNEL)
    rows_by_key = _places([trace.names[name] for name in trace.name[kernels].tolist()], kernel_key)
    nothing = np.empty(0, dtype=np.int64)
    found = []
    for kernel, launches in zip(table.kernels, _by_number(table.kernel, len(table.kernels)), strict=True):
        mean = _mean(values[launches])
        rows = kernels[rows_by_key.get(kernel_key(kernel), nothing)]
        lasted = float(np.mean(trace.dur_ns[rows])) if len(rows) else float(mean[Figure.DURATION_NS])
        rate = float(mean[Figure.DRAM_BYTES]) / lasted if lasted > 0 else float("nan")
        found.append(
            KernelCounters(
                kernel="(kernel not named)" if kernel == UNNAMED else kernel,
                launches=len(launches),
                us_per_step=us_per_step(timeline, rows) if len(rows) else float("nan"),
                dram_bytes=float(mean[Figure.DRAM_BYTES]),
                dram_gb_per_s=rate,
                l2_hit_pct=float(mean[Figure.L2_HIT_PCT]),
                tensor_pct=float(mean[Figure.TENSOR_PCT]),
                tensor_instructions=float(mean[Figure.TENSOR_INSTRUCTIONS]),
                flops=float(mean[Figure.FLOPS]),
            )
        )
    return tuple(sorted(found, key=lambda one: -np.nan_to_num([one.us_per_step, one.dram_bytes, one.flops]) @ _FIRST))


_FIRST = np.array([1e15, 1.0, 1e-15])
"""Weights that order by time, among equals by bytes, among those by arithmetic."""


def figures(table: CounterTable) -> FloatArray:
    """Shape (launches, len(Figure)): what the metrics of `table` mean."""
    columns = _Columns(table)
    found = np.full((len(table), len(Figure)), np.nan)
    found[:, Figure.DURATION_NS] = columns.first("gpu__time_duration.sum", "gpu__time_duration.avg")
    found[:, Figure.DRAM_BYTES] = _dram_bytes(columns, found[:, Figure.DURATION_NS])
    hits = columns.first("lts__t_sector_hit_rate.pct", "lts__t_sector_hit_rate")
    looked = 100.0 * columns.first("lts__t_sectors_lookup_hit.sum") / _nonzero(columns.first("lts__t_sectors.sum"))
    found[:, Figure.L2_HIT_PCT] = np.where(np.isnan(hits), looked, hits)
    found[:, Figure.TENSOR_PCT] = columns.largest(_TENSOR_PCT)
    found[:, Figure.TENSOR_INSTRUCTIONS] = np.where(
        np.isnan(total := columns.first("sm__inst_executed_pipe_tensor.sum")), columns.sum(_TENSOR_PARTS), total
    )
    found[:, Figure.FLOPS] = columns.sum(_ONCE) + 2.0 * columns.sum(_TWICE)
    return found


_TENSOR_PCT = re.compile(
    r"^sm__(?:pipe_tensor\w*_cycles_active|inst_executed_pipe_tensor\w*)\.avg\.pct_of_peak_sustained_(?:active|elapsed)$"
)
_TENSOR_PARTS = re.compile(r"^smp?s?p?__inst_executed_pipe_tensor_(?:op_|subpipe_)?\w+\.sum$")
_ONCE = re.compile(r"^smsp__sass_thread_inst_executed_op_[dfh](?:add|mul)_pred_on\.sum$")
_TWICE = re.compile(r"^smsp__sass_thread_inst_executed_op_[dfh]fma_pred_on\.sum$")


class _Columns:
    """Metrics by name; NaN where there is none."""

    def __init__(self, table: CounterTable) -> None:
        self._table = table
        self._none = np.full(len(table), np.nan)

    def first(self, *names: str) -> FloatArray:
        """The first of `names` that was measured."""
        names = tuple(name for name in names if name in self._table.metrics)
        return self._table.values[:, self._table.metrics.index(names[0])] if names else self._none

    def largest(self, pattern: re.Pattern[str]) -> FloatArray:
        """The largest of the metrics that match, launch by launch: the parts of one pipe each have their own."""
        return np.fmax.reduce([self._none, *self._matching(pattern)])

    def sum(self, pattern: re.Pattern[str]) -> FloatArray:
        """The sum of the metrics that match."""
        matching = self._matching(pattern)
        return np.sum(matching, axis=0) if matching else self._none

    def _matching(self, pattern: re.Pattern[str]) -> list[FloatArray]:
        return [self._table.values[:, k] for k, name in enumerate(self._table.metrics) if pattern.match(name)]


def _dram_bytes(columns: _Columns, duration_ns: FloatArray) -> FloatArray:
    """By what was measured of it: bytes, 32-byte sectors, or a rate and the time."""
    ways = (
        columns.first("dram__bytes.sum"),
        columns.first("dram__bytes_read.sum") + columns.first("dram__bytes_write.sum"),
        SECTOR_BYTES * (columns.first("dram__sectors_read.sum") + columns.first("dram__sectors_write.sum")),
        columns.first("dram__bytes.sum.per_second") * duration_ns / 1e9,
    )
    found = ways[0]
    for way in ways[1:]:
        found = np.where(np.isnan(found), way, found)
    return found


def _nonzero(values: FloatArray) -> FloatArray:
    return np.where(values == 0, np.nan, values)


def _mean(values: FloatArray) -> FloatArray:
    """Over the launches, shape (m, figures), those that have the figure."""
    known = ~np.isnan(values)
    sums, counts = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


# Names


_ANONYMOUS = "(anonymous namespace)"
_LAMBDA = re.compile(r"\[lambda\(([^()]*)\) \(instance (\d+)\)\]")
_CAST = re.compile(r"\((?:unsigned |signed )?(?:int|long long|long|short|char|bool|__int128)\)")
_SUFFIX = re.compile(r"(?<=\d)(?:ull?|ll?)\b")
_TRUTH = re.compile(r"\b(true|false)\b")


def kernel_key(name: str) -> str:
    """One text for a kernel, whoever unmangled it: `k<(int)4, (bool)1>(T1)` and `void k<4, true>(int)` are the same."""
    text = _LAMBDA.sub(r"{lambda(\1)#\2}", name.strip().removeprefix("void ").replace("<unnamed>", _ANONYMOUS))
    text = _CAST.sub("", _without_parameters(text))
    text = _SUFFIX.sub("", text)
    return _TRUTH.sub(lambda match: "1" if match.group() == "true" else "0", text).replace(" ", "")


def _without_parameters(name: str) -> str:
    """The name up to its parameters: the last parenthesis outside of all brackets, `(anonymous namespace)` apart."""
    depth, opened = 0, NONE
    for place, character in enumerate(name):
        if character in "<([{":
            if character == "(" and depth == 0 and not name.startswith(_ANONYMOUS, place):
                opened = place
            depth += 1
        elif character in ">)]}" and not name.startswith("->", place - 1):
            depth = max(0, depth - 1)
    return name[:opened] if opened > 0 else name


def base_name(name: str) -> str:
    """The function's own name, without namespaces and arguments: what `ncu --print-kernel-base function` writes."""
    plain = _without_parameters(name.strip().removeprefix("void "))
    return plain.partition("<")[0].rpartition("::")[2].strip()


def _same_kernels(timeline: Timeline, rows: IntArray, table: CounterTable) -> Iterable[tuple[IntArray, IntArray, bool]]:
    """For each kernel that was measured: indices into `rows`, its launches in the table, and whether the name is so
    vague that only launches in the same order can be meant."""
    trace = timeline.trace
    names = [trace.names[name] for name in trace.name[rows].tolist()]
    by_key = _places(names, kernel_key)
    measured: dict[str, list[IntArray]] = {}
    for kernel, launches in zip(table.kernels, _by_number(table.kernel, len(table.kernels)), strict=True):
        measured.setdefault(kernel_key(kernel), []).append(launches)
    vague = {key for key in measured if key not in by_key and "<" not in key}
    by_base = _places(names, base_name) if vague else {}
    for key, parts in measured.items():
        launches = np.sort(np.concatenate(parts))
        if key in by_key:
            yield by_key[key], launches, False
        elif key in by_base and key in vague:
            yield by_base[key], launches, True


def _by_number(numbers: Int32Array, count: int) -> list[IntArray]:
    """For each of the numbers 0 to `count` - 1, where it stands in `numbers`, in order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, count)))


def _places(names: list[str], key_of: Callable[[str], str]) -> dict[str, IntArray]:
    """Places in `names` by key; each distinct name is worked on once."""
    keys = {name: key_of(name) for name in dict.fromkeys(names)}
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(keys[name], []).append(place)
    return {key: np.array(found, dtype=np.int64) for key, found in places.items()}


def _give(
    timeline: Timeline,
    joined: FloatArray,
    rows: IntArray,
    members: IntArray,
    values: FloatArray,
    *,
    in_order_only: bool,
) -> None:
    """Write one kernel's figures into `joined` at `members`."""
    step = timeline.steps.of[rows[members]]
    place = _place_in_step(step)
    steady = timeline.steps.are_steady(rows[members])
    counts = np.bincount(step[steady], minlength=1) if steady.any() else np.zeros(1, dtype=np.int64)
    counts = counts[counts > 0]
    period = int(counts[0]) if len(counts) and (counts == counts[0]).all() else 0
    if period and len(values) % period == 0:
        by_place = np.stack([_mean(values[k::period]) for k in range(period)])
        in_period = (place != NONE) & (place < period)
        joined[members[in_period]] = by_place[place[in_period]]
        members = members[~in_period]
    elif in_order_only:
        return
    if not in_order_only:
        joined[members] = _mean(values)


def _place_in_step(step: Int32Array) -> IntArray:
    """For each launch, how many of the same kernel its step had before it; NONE outside steps."""
    place = np.full(len(step), NONE, dtype=np.int64)
    for number in np.unique(step[step != NONE]).tolist():
        here = np.flatnonzero(step == number)
        place[here] = np.arange(len(here))
    return place
