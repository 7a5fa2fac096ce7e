"""Where the steps are, which of them are steady, and which step each event belongs to."""

from __future__ import annotations

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, Category, Int32Array, IntArray, Trace
from ..trace.scalars import whole_number
from .coldstart import find_cold_start
from .columns import distinct, is_among, median
from .model import CallTree, Launches, Steps, StepSource
from .period import repetitions
from .tree import STEP_PREFIX, is_step_mark, named

Bounds = tuple[IntArray, IntArray, IntArray]
"""Start, end and number of each step."""

_CUT_OFF = 0.05
"""A last step shorter than this share of the others was cut off by the end of the recording."""
_MOST_OPTIMIZERS = 4
"""Optimizers of one name that one step of a training loop may use."""


def find_steps(trace: Trace, tree: CallTree, launches: Launches) -> Steps:
    """The steps by the best source that the trace has; always at least one if it holds any work."""
    source, (start_ns, end_ns, number) = _bounds(trace, tree, launches)
    cold = find_cold_start(trace, start_ns, end_ns)
    if source is StepSource.PERIOD and cold.is_cold:
        # Nothing repeats in a steady state: the recording is one cold pass.
        source, (start_ns, end_ns, number) = StepSource.WHOLE, _whole(trace)
        cold = find_cold_start(trace, start_ns, end_ns)
    return Steps(
        source=source,
        start_ns=start_ns,
        end_ns=end_ns,
        number=number,
        is_warmup=cold.is_warmup,
        of=_step_of_rows(trace, launches, start_ns, end_ns),
        is_cold=cold.is_cold,
    )


def _bounds(trace: Trace, tree: CallTree, launches: Launches) -> tuple[StepSource, Bounds]:
    marks = _profiler_marks(trace)
    if len(marks[0]):
        return StepSource.PROFILER, marks
    ends = _optimizer_ends(trace)
    start_ns = np.append(_work_span(trace)[0], ends)[: len(ends)]
    if len(ends) > 1 and np.all(ends > start_ns):
        return StepSource.OPTIMIZER, (start_ns, ends, np.arange(len(ends)))
    start_ns, end_ns = repetitions(trace, tree, launches)
    if len(start_ns) > 1 and np.all(end_ns > start_ns):
        return StepSource.PERIOD, (start_ns, end_ns, np.arange(len(start_ns)))
    return StepSource.WHOLE, _whole(trace)


def _whole(trace: Trace) -> Bounds:
    first, last = _work_span(trace)
    return (np.array([first]), np.array([last]), np.zeros(1, dtype=np.int64)) if last > first else _none()


def _profiler_marks(trace: Trace) -> Bounds:
    """`ProfilerStep#N` ranges of the thread that has most of them; the device's copies if the host has none."""
    rows = np.flatnonzero(is_step_mark(trace))
    if not len(rows):
        marked = named(trace, *(name for name in trace.names if name.startswith(STEP_PREFIX)))
        rows = np.flatnonzero(marked & (trace.cat == Category.DEVICE_ANNOTATION))
    if not len(rows):
        return _none()
    busiest = np.bincount(trace.thread[rows]).argmax()
    rows = rows[(trace.thread[rows] == busiest) & (trace.dur_ns[rows] > 0)]
    # A step inside another one is no step.
    reach = np.maximum.accumulate(trace.end_ns[rows])
    rows = rows[np.append(True, trace.ts_ns[rows][1:] >= reach[:-1])[: len(rows)]]
    if len(rows) > 1 and trace.dur_ns[rows[-1]] < _CUT_OFF * median(trace.dur_ns[rows[:-1]]):
        rows = rows[:-1]
    number = np.array([whole_number(trace.name_of(row)[len(STEP_PREFIX) :]) for row in rows], dtype=np.int64)
    return trace.ts_ns[rows], trace.end_ns[rows], number


def _optimizer_ends(trace: Trace) -> IntArray:
    """Ends of the `Optimizer.step` ranges that end a step of the training loop.

    With several optimizers that is the one that steps last. If they share a name, as those of a GAN do, the stretches
    between their steps tell: the loop's step is the shortest run of stretches that comes again and again.
    """
    names = [name for name in trace.names if name.startswith("Optimizer.step#")]
    rows = np.flatnonzero(named(trace, *names) & (trace.cat != Category.DEVICE_ANNOTATION))
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    kinds, first = np.unique(trace.name[rows], return_index=True)
    ends = distinct(trace.end_ns[rows[trace.name[rows] == kinds[first.argmax()]]])
    op_ns = trace.ts_ns[trace.rows(Category.CPU_OP)]
    stretches = np.diff(np.searchsorted(op_ns, ends))
    cycle = _cycle(stretches)
    return ends[cycle - 1 :: cycle]


def _cycle(sizes: IntArray) -> int:
    """After how many items the sizes come again, within 2 per cent; 1 if at once or never."""
    for length in range(1, min(_MOST_OPTIMIZERS, len(sizes) // 2) + 1):
        if np.all(np.abs(sizes[length:] - sizes[:-length]) <= 0.02 * sizes.max()):
            return length
    return 1


def _work_span(trace: Trace) -> tuple[int, int]:
    """From the first to the last recorded work of host or device."""
    work = ~is_among(trace.cat, (Category.PROFILER, Category.OVERHEAD, Category.OTHER, Category.PYTHON_FUNCTION))
    if not work.any():
        work = trace.cat == Category.PYTHON_FUNCTION
    if not work.any():
        return 0, 0
    return int(trace.ts_ns[work].min()), int(trace.end_ns[work].max())


def _step_of_rows(trace: Trace, launches: Launches, start_ns: IntArray, end_ns: IntArray) -> Int32Array:
    """The step in which each event starts; for device work the step of the call, else the operator, behind it.

    Device work of which no launch is known was launched before the recording, unless the recording holds the device
    alone: then its own time is all there is.
    """
    of = step_at(trace.ts_ns, start_ns, end_ns)
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    cause = np.where(launches.runtime[device_rows] >= 0, launches.runtime[device_rows], launches.op[device_rows])
    if (cause >= 0).any():
        of[device_rows] = np.where(cause >= 0, of[cause], NONE)
    return of


def step_windows(trace: Trace, steps: Steps, device_paced: bool) -> tuple[IntArray, IntArray]:
    """Start and end, shape (steps,), of the time that each step takes.

    That is its host range, unless the host runs ahead and the device sets the pace. Then a step is complete when the
    device work that it launched is done, and its window starts when the step before is complete.
    """
    if not device_paced:
        return steps.start_ns, steps.end_ns
    complete_ns = steps.end_ns.copy()
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    device_rows = device_rows[steps.of[device_rows] >= 0]
    np.maximum.at(complete_ns, steps.of[device_rows], trace.end_ns[device_rows])
    complete_ns = np.maximum.accumulate(complete_ns)
    start_ns = np.maximum(steps.start_ns, np.append(steps.start_ns[:1], complete_ns[:-1]))
    return start_ns, np.maximum(complete_ns, start_ns)


def step_at(moment_ns: IntArray, start_ns: IntArray, end_ns: IntArray) -> Int32Array:
    """The step that each moment lies in; NONE outside all. `start_ns` and `end_ns` bound the steps in order."""
    if not len(start_ns):
        return np.full(len(moment_ns), NONE, dtype=np.int32)
    step = np.searchsorted(start_ns, moment_ns, side="right") - 1
    inside = (step >= 0) & (moment_ns < end_ns[step])
    return np.where(inside, step, NONE).astype(np.int32)


def _none() -> Bounds:
    empty = np.empty(0, dtype=np.int64)
    return empty, empty, empty
