"""The events of windows as the network reads them: words in the order in which the host caused them, with figures.

Of operators stand the outermost (what Python or the autograd engine called) and the innermost (what did the work); of
the runtime's calls all but plain launches; of Python the few frames that tell of work which no operator shows; of the
device everything, after the call that launched it. Repeats that follow one another directly become one event.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ..timeline.columns import number_by_name
from ..timeline.kernel_names import decode
from ..timeline.model import Phase, Timeline
from ..timeline.roofline import place
from ..trace.model import (
    DEVICE_CATEGORIES,
    NONE,
    BoolArray,
    Category,
    FloatArray,
    Int32Array,
    IntArray,
    OpInputs,
    Trace,
)
from . import vocabulary
from .features.inputs import is_contiguous
from .model import EventSequences, Windows
from .spans import launch_moments

LENGTH = 48
CHANNELS = (
    "duration",  # log10(1 + µs), the mean of repeats
    "gap",  # log10(1 + µs) since the previous event of the same lane of the window: operators, other host work, device
    "idle",  # log10(1 + µs) that the device had nothing to do before this device event
    "queue",  # log10(1 + µs) from the launching call to the start on the device
    "work",  # log10(1 + MFLOP); of a device event its operator's, as the next four
    "moved",  # log10(1 + kB)
    "rate",  # log10(1 + GFLOP/s)
    "bandwidth",  # log10(1 + GB/s)
    "roof",  # share of what the device could do at best, 0 to 1.5
    "elements",  # log10(1 + elements of the largest input tensor)
    "tensors",  # how many input tensors there are (with a bias one more)
    "half",  # 1 if the first tensor is fp16 or bf16; as the next three
    "single",  # fp32
    "double",  # fp64
    "whole",  # integers or booleans
    "strided",  # 1 if an input tensor is not dense in the order of its dimensions
    "channels_last",  # 1 if an input tensor lies in channels last
    "unaligned",  # 1 if a dimension of a matrix is no multiple of 8
    "shapes",  # 1 if the inputs were recorded
    "outer",  # 1 for an operator that Python or the engine called
    "forward",  # 1 if it belongs to this phase of the step; as the next three
    "backward",
    "optimizer",
    "data",
    "share",  # its part of the time of its lane in the window, 0 to 1
    "repeats",  # log10 of how many follow one another directly, alike in word and inputs
    "alike",  # log10 of how many events of the window have this word
)
"""What `figures` holds of each event, rounded to 1/8 so that it packs well. 0 where the trace does not tell."""

_STEP = 8
_OPERATOR, _HOST, _DEVICE = range(3)
"""Lanes."""
_HALF = frozenset(("c10::Half", "c10::BFloat16"))
_WHOLE = frozenset(("int", "long", "long int", "short", "short int", "unsigned char", "signed char", "bool"))
_FACTS = ("elements", "tensors", "half", "single", "double", "whole", "strided", "channels_last", "unaligned", "shapes")
_MOST_TENSORS = 8
_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.DATA)


@dataclass(frozen=True, slots=True)
class _Events:
    """Events of windows by window, and in it by the time at which the host caused them. Arrays have shape (events,)."""

    row: IntArray
    window: IntArray
    token: IntArray
    lane: IntArray
    op: IntArray
    """The operator whose inputs and costs count: itself, or the one that launched it; NONE for none."""

    def take(self, which: IntArray | BoolArray) -> _Events:
        return _Events(self.row[which], self.window[which], self.token[which], self.lane[which], self.op[which])


def sequences(timeline: Timeline, windows: Windows, length: int = LENGTH) -> EventSequences:
    """The events of each window; of those with more than `length` the ones that take most of their lane's time."""
    token = np.zeros((len(windows), length), dtype=np.uint16)
    figures = np.zeros((len(windows), length, len(CHANNELS)), dtype=np.float16)
    events = _events(timeline, windows)
    if not len(events.row):
        return EventSequences(token, figures)
    first, repeats = _runs(timeline.trace, events)
    duration_ns = np.add.reduceat(timeline.trace.dur_ns[events.row], first).astype(np.float64)
    events = events.take(first)
    share = _share_of_lane(events, duration_ns)
    kept, place_in_window = _most_telling(events, share, length)
    columns = {
        "duration": _log_us(duration_ns / repeats)[kept],
        "gap": _log_us(_gaps(timeline.trace, events))[kept],
        "share": share[kept],
        "repeats": np.log10(repeats)[kept],
        "alike": np.log10(_alike(events))[kept],
    }
    events = events.take(kept)
    columns |= _of_kept(timeline, events)
    at = (events.window, place_in_window)
    token[at] = events.token
    rows = np.nan_to_num(np.column_stack([columns[name] for name in CHANNELS]), copy=False, posinf=0.0)
    figures[at] = np.round(rows * _STEP) / _STEP
    return EventSequences(token, figures)


def _events(timeline: Timeline, windows: Windows) -> _Events:
    """All events that have a word, in order."""
    trace, tree = timeline.trace, timeline.tree
    token, lane = np.zeros(len(trace), dtype=np.int64), np.full(len(trace), _HOST, dtype=np.int64)
    inside = windows.of != NONE
    for category, word, which in (
        (Category.CPU_OP, vocabulary.operator, _OPERATOR),
        (Category.RUNTIME, vocabulary.runtime, _HOST),
        (Category.USER_ANNOTATION, vocabulary.annotation, _HOST),
        (Category.PYTHON_FUNCTION, vocabulary.frame, _HOST),
    ):
        rows = np.flatnonzero(inside & (trace.cat == category))
        if which == _OPERATOR:
            rows = rows[_is_outer_or_leaf(timeline, rows)]
        token[rows] = number_by_name(trace, rows, word)
        lane[rows] = which
    device = trace.rows(*DEVICE_CATEGORIES)
    device = device[inside[device]]
    precision = number_by_name(trace, device, _precision)
    token[device] = vocabulary.kernels(timeline.kernel_class[device].astype(np.int64), precision)
    lane[device] = _DEVICE
    rows = np.flatnonzero(token != vocabulary.PADDING)
    moment = launch_moments(timeline)[rows]
    order = rows[np.lexsort((lane[rows] == _DEVICE, moment, windows.of[rows]))]
    op = np.where(lane[order] == _DEVICE, timeline.launches.op[order], tree.op[order])
    return _Events(order, windows.of[order].astype(np.int64), token[order], lane[order], op.astype(np.int64))


def _is_outer_or_leaf(timeline: Timeline, ops: IntArray) -> BoolArray:
    above = _op_above(timeline, ops)
    has_inner = np.zeros(len(timeline.trace), dtype=np.bool_)
    has_inner[above[above != NONE]] = True
    return (above == NONE) | ~has_inner[ops]


def _op_above(timeline: Timeline, ops: IntArray) -> Int32Array:
    """The operator round each of `ops`; NONE for those that Python or the engine called."""
    parent = timeline.tree.parent[ops]
    return np.where(parent == NONE, NONE, timeline.tree.op[parent])


def _precision(name: str) -> int:
    return int(decode(name).precision)


def _runs(trace: Trace, events: _Events) -> tuple[IntArray, IntArray]:
    """Where runs of events begin that are alike in word and inputs, and how long they are."""
    inputs = trace.inputs[events.row]
    keys = (events.window, events.token, inputs)
    begins = np.ones(len(events.row), dtype=np.bool_)
    begins[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    first = np.flatnonzero(begins)
    return first, np.diff(first, append=len(begins))


def _share_of_lane(events: _Events, duration_ns: FloatArray) -> FloatArray:
    lane = events.window * 3 + events.lane
    total = np.bincount(lane, weights=duration_ns)
    return duration_ns / np.maximum(total[lane], 1.0)


def _most_telling(events: _Events, share: FloatArray, length: int) -> tuple[IntArray, IntArray]:
    """Which events stay, in order, and each one's place in its window."""
    count = np.bincount(events.window)
    start = np.cumsum(count) - count
    kept = np.arange(len(events.row))
    if count.max() > length:
        order = np.lexsort((-share, events.window))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = kept - start[events.window]
        kept = np.flatnonzero(rank < length)
        count = np.minimum(count, length)
        start = np.cumsum(count) - count
    return kept, np.arange(len(kept)) - start[events.window[kept]]


def _alike(events: _Events) -> IntArray:
    """How many events of its window have the word of each."""
    word = events.window * vocabulary.SIZE + events.token
    return np.bincount(word)[word]


def _of_kept(timeline: Timeline, events: _Events) -> dict[str, FloatArray]:
    """The other channels; NaN where the trace does not tell."""
    phase = timeline.phase[events.row]
    is_op = events.lane == _OPERATOR
    outer = np.zeros(len(events.row))
    outer[is_op] = _op_above(timeline, events.row[is_op]) == NONE
    return {
        "outer": outer,
        **{member.name.lower(): (phase == member).astype(np.float64) for member in _PHASES},
        **_waits(timeline, events),
        **_costs(timeline, events),
        **_facts(timeline.trace, events),
    }


def _log_us(ns: np.ndarray) -> FloatArray:
    return np.log10(1.0 + np.maximum(ns, 0) / 1000.0)


def _gaps(trace: Trace, events: _Events) -> FloatArray:
    """ns from the latest end of the lane's earlier events, of the same window, to each start; 0 for the first."""
    lane = events.window * 3 + events.lane
    order = np.lexsort((trace.ts_ns[events.row], lane))
    row, lane = events.row[order], lane[order]
    span = int(trace.end_ns[row].max()) - int(trace.ts_ns[row].min()) + 1
    offset = (lane - lane[0]) * span
    reached = np.maximum.accumulate(trace.end_ns[row] + offset) - offset
    gaps = np.zeros(len(row))
    follows = lane[1:] == lane[:-1]
    gaps[order[1:][follows]] = (trace.ts_ns[row[1:]] - reached[:-1])[follows]
    return gaps


def _waits(timeline: Timeline, events: _Events) -> dict[str, FloatArray]:
    trace, idle = timeline.trace, timeline.idle
    idle_ns = np.zeros(len(trace))
    known = idle.before != NONE
    idle_ns[idle.before[known]] = (idle.end_ns - idle.start_ns)[known]
    call = timeline.launches.runtime[events.row]
    is_known = (events.lane == _DEVICE) & (call != NONE)
    queue_ns = np.where(is_known, trace.ts_ns[events.row] - trace.ts_ns[call], 0)
    return {"idle": _log_us(idle_ns[events.row] * (events.lane == _DEVICE)), "queue": _log_us(queue_ns)}


def _costs(timeline: Timeline, events: _Events) -> dict[str, FloatArray]:
    roofline = place(timeline)
    op = np.where(events.lane == _DEVICE, roofline.op[events.row], events.op)
    flops, moved = (np.where(op == NONE, np.nan, cost[op]) for cost in (timeline.costs.flops, timeline.costs.bytes))
    time_ns = np.where(op == NONE, 0, roofline.time_ns[op])
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "work": np.log10(1.0 + flops / 1e6),
            "moved": np.log10(1.0 + moved / 1e3),
            "rate": np.log10(1.0 + flops / time_ns),
            "bandwidth": np.log10(1.0 + moved / time_ns),
            "roof": np.minimum(np.where(op == NONE, np.nan, roofline.best_ns[op]) / time_ns, 1.5),
        }


def _facts(trace: Trace, events: _Events) -> dict[str, FloatArray]:
    """What the recorded inputs of each event's operator say; every distinct set of inputs is looked at once."""
    inputs = np.where(events.op == NONE, NONE, trace.inputs[events.op])
    table = np.zeros((len(trace.input_table) + 1, len(_FACTS)))
    for index in np.flatnonzero(np.bincount(inputs + 1)[1:]).tolist():
        table[index + 1] = _facts_of(trace.input_table[index])
    return dict(zip(_FACTS, table[inputs + 1].T, strict=True))


def _facts_of(inputs: OpInputs) -> tuple[float, ...]:
    """In the order of `_FACTS`."""
    shapes = [inputs.shape(argument) for argument in range(len(inputs.dims))]
    strides = [inputs.stride(argument) for argument in range(len(inputs.dims))]
    kind = next((kind for kind, shape in zip(inputs.types, shapes, strict=False) if shape), "")
    sparse = [
        (shape, stride)
        for shape, stride in zip(shapes, strides, strict=True)
        if shape and len(shape) == len(stride) and not is_contiguous(shape, stride)
    ]
    matrices = [shape for shape in shapes if len(shape) in (2, 3)]
    return (
        np.log10(1.0 + max((prod(shape) for shape in shapes if shape), default=0)),
        float(min(sum(map(bool, inputs.dims)), _MOST_TENSORS)),
        float(kind in _HALF),
        float(kind == "float"),
        float(kind == "double"),
        float(kind in _WHOLE),
        float(bool(sparse)),
        float(any(_is_channels_last(shape, stride) for shape, stride in sparse)),
        float(any(size % 8 for shape in matrices for size in shape[-2:])),
        1.0,
    )


def _is_channels_last(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Of a tensor that is not dense in the order of its dimensions."""
    return len(shape) in (4, 5) and shape[1] > 1 and stride[1] == 1
