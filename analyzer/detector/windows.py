"""`cut`: the steady steps of a trace as windows, along the call tree.

A step is opened from the outside in (units.py): calls of modules, annotations, Python frames, operators; whatever takes
much of the step and holds something is opened further. Neighbouring small parts are merged (grouping.py), and what
stands at the same place in several steps is one region (regions.py). What comes out:

- Windows tile each chosen step: one begins where the one before ends, the first begins and the last ends with the step.
  A host event belongs to the window in which it *begins*, whatever its thread; a frame round several windows belongs to
  the first of them, so sums over host events of different depth say little (`CallTree.self_ns` helps).
- Backward operators, on whichever thread, have windows of their own: those of one region's operators, in order of time.
- Device work belongs to the window that launched it. Kernels of a replayed graph are parted by their order, as if the
  call had launched them one by one. Work launched before the recording belongs to no window.
- Of more than `MOST_STEPS` steady steps so many are taken, evenly spread; events of the others have no window.
- A trace without host events is cut along its kernels.

For whoever sums over windows: `members` gives the rows of each window one after the other, for `np.add.reduceat` and
the like; no window is empty. `moments` gives the host time at which each event counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..timeline.columns import is_among
from ..timeline.memo import once
from ..timeline.model import Phase, Timeline
from ..timeline.select import typical_step
from ..trace.model import DEVICE_CATEGORIES, HOST_CATEGORIES, NONE, BoolArray, Int32Array, IntArray
from .grouping import Parts, group
from .model import Windows
from .regions import region_names
from .spans import launch_moments, measure_costs, usual_share
from .units import Units, find_units, phases_of

MOST_STEPS = 3
"""So many steps say what the others would: a median, and which one is odd; scoring costs by the step."""
MOST_WINDOWS = 64
"""Of one step."""

moments = launch_moments


@dataclass(frozen=True, slots=True)
class Members:
    """Events by window."""

    rows: IntArray
    """Rows of the trace, window by window, in time order in each."""
    start: IntArray
    """Shape (windows + 1,): the events of window w are `rows[start[w]:start[w + 1]]`."""


def members(windows: Windows, wanted: BoolArray | None = None) -> Members:
    """The events of each window; only those that are `wanted` (shape (n,)), which may leave windows empty."""
    in_window = windows.of != NONE
    rows = np.flatnonzero(in_window if wanted is None else in_window & wanted)
    rows = rows[np.argsort(windows.of[rows], kind="stable")]
    return Members(rows, np.searchsorted(windows.of[rows], np.arange(len(windows) + 1)))


@once
def cut(timeline: Timeline) -> Windows:
    """The windows of the steady steps; none if there are no steps, or nothing in them."""
    chosen = chosen_steps(timeline)
    moment_ns = moments(timeline)
    costs = measure_costs(timeline, moment_ns)
    units = find_units(timeline, chosen, moment_ns, costs)
    if not len(units):
        return _nothing(timeline)
    order = _typical_order(timeline, units)
    parts = _parts(timeline, units, order, len(chosen), moment_ns)
    region_of_part = np.full(len(units.parent), NONE, dtype=np.int64)
    region_of_part[order] = group(parts)
    region, first = _runs(units, region_of_part[units.part])
    names = region_names(timeline, units, order, parts, region_of_part[order])
    # Numbers of regions that no step shows, because a neighbour hid them, are left out.
    shown, region = np.unique(region, return_inverse=True)
    start_ns = units.start_ns[first]
    step = units.step[first]
    is_last = np.append(np.diff(step) != 0, True)
    end_ns = np.where(is_last, timeline.steps.end_ns[step], np.append(start_ns[1:], 0))
    return Windows(
        start_ns=start_ns,
        end_ns=end_ns,
        step=step.astype(np.int32),
        region=region.astype(np.int32),
        regions=tuple(names[index] for index in shown.tolist()),
        of=_window_of(timeline, start_ns, step, moment_ns),
    )


def chosen_steps(timeline: Timeline) -> IntArray:
    """The steps that are cut, in order: all steady ones, or `MOST_STEPS` of them, evenly spread."""
    steady = timeline.steps.steady
    if len(steady) <= MOST_STEPS:
        return steady
    return steady[np.linspace(0, len(steady) - 1, MOST_STEPS).round().astype(np.int64)]


def _nothing(timeline: Timeline) -> Windows:
    none = np.empty(0, dtype=np.int64)
    return Windows(
        start_ns=none,
        end_ns=none,
        step=none.astype(np.int32),
        region=none.astype(np.int32),
        regions=(),
        of=np.full(len(timeline.trace), NONE, dtype=np.int32),
    )


def _typical_order(timeline: Timeline, units: Units) -> IntArray:
    """Parts that are units, in the order of the typical step; those that it lacks after what comes before them."""
    chosen, first = np.unique(units.step, return_index=True)
    durations = timeline.steps.duration_ns[chosen]
    wanted = typical_step(timeline)
    typical = wanted if wanted in chosen else int(chosen[np.argsort(durations)[len(chosen) // 2]])
    rank = np.arange(len(units)) - first[np.searchsorted(chosen, units.step)]
    place = np.full(len(units.parent), NONE, dtype=np.int64)
    of_typical = units.step == typical
    place[units.part[of_typical]] = rank[of_typical]
    known = place[units.part]
    last_known = np.maximum.accumulate(np.where((known != NONE) | (rank == 0), np.arange(len(units)), 0))
    present, example = np.unique(units.part, return_index=True)
    return present[np.lexsort((rank[example], known[last_known][example]))]


def _parts(timeline: Timeline, units: Units, order: IntArray, steps: int, moment_ns: IntArray) -> Parts:
    """What grouping needs to know of each part, in `order`."""
    trace = timeline.trace
    share = usual_share(units.part, units.share, len(units.parent), steps)
    # Medians leave out what holds each step up somewhere else: the parts still make a whole step.
    share *= units.share.sum() / max(steps * share.sum(), 1e-9)
    forward = np.full(len(units.parent), NONE, dtype=np.int64)
    source = timeline.forward_op[units.row]
    has_source = np.flatnonzero((source != NONE) & ~is_among(trace.cat[units.row], DEVICE_CATEGORIES))
    at = np.searchsorted(units.start_ns, moment_ns[source[has_source]], side="right") - 1
    place = np.full(len(units.parent), NONE, dtype=np.int64)
    place[order] = np.arange(len(order))
    forward[units.part[has_source]] = place[units.part[np.maximum(at, 0)]]
    phase = phases_of(timeline, units.example[order])
    phase[(forward[order] != NONE)] = Phase.BACKWARD
    return Parts(share=share[order], phase=phase, within=units.parent[order], forward=forward[order])


def _runs(units: Units, region: IntArray) -> tuple[IntArray, IntArray]:
    """The region of each window, and the unit that it begins with: runs of units of one region in a step.

    Where a step mixes its regions so that there would be too many windows, a region once left is not entered again.
    """
    turns = (np.diff(region, prepend=NONE) != 0) | (np.diff(units.step, prepend=NONE) != 0)
    count = np.bincount(units.step[turns])
    if count.max() > MOST_WINDOWS:
        many = units.step * (int(region.max()) + 1)
        region = np.maximum.accumulate(region + many) - many
        turns = (np.diff(region, prepend=NONE) != 0) | (np.diff(units.step, prepend=NONE) != 0)
    first = np.flatnonzero(turns)
    # A window of no length, whose successor starts with it, holds nothing.
    holds = np.append(np.diff(units.start_ns[first]) > 0, True)
    return region[first[holds]], first[holds]


def _window_of(timeline: Timeline, start_ns: IntArray, step: IntArray, moment_ns: IntArray) -> Int32Array:
    """Shape (n,): the window of each event, from where windows start and their steps."""
    trace, steps = timeline.trace, timeline.steps
    counts = is_among(trace.cat, (*HOST_CATEGORIES, *DEVICE_CATEGORIES))
    counts &= np.append(is_among(np.arange(len(steps)), step), False)[steps.of]
    rows = np.flatnonzero(counts)
    of = np.full(len(trace), NONE, dtype=np.int32)
    of[rows] = np.searchsorted(start_ns, moment_ns[rows], side="right") - 1
    return of
