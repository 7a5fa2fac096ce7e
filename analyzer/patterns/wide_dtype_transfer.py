"""wide-dtype-transfer: images are converted to float32 on the host, then sent to the device at four times their size.

Why it is slow: a byte per value becomes four on a bus that is slow already, and the host does elementwise work that the
device would do in no time.
Trace: a copy to the device of a large float32 tensor of images, and before it in the step bytes that are made float32,
as many as are sent.
Edit: the copy takes a quarter of its time, plus what the conversion and the elementwise operators that followed it take
on the device by its memory's rate; on the host those go.
Gate: tensors of under three dimensions or under a megabyte; the CPU. Where the conversion happens out of sight (in
loader workers), the copy alone proves nothing: a hint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, prod

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.op_inputs import of_each, taking
from ..timeline.select import count_per_step, events_of, in_typical_step, outer_op, steady, value_per_step
from ..timeline.transfers import host_to_device
from ..trace.model import NONE, Category, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_BYTE, _FLOAT = "unsigned char", "float"
_MOVES = ("aten::to", "aten::_to_copy", "aten::copy_")
_LEAST_ELEMENTS = 1 << 18
_WIDENING = ("aten::copy_", "aten::div", "aten::mul", "aten::sub", "aten::true_divide")
_POINTWISE = (
    "aten::div_",
    "aten::div",
    "aten::sub_",
    "aten::sub",
    "aten::mul_",
    "aten::mul",
    "aten::add",
    "aten::add_",
)
_ENOUGH = 0.9
_NARROW = 0.25
_MEMORY_SHARE = 0.8
_DEFAULT_GB_PER_S = 500.0


@dataclass(frozen=True, slots=True)
class _Sent:
    """A large float32 tensor sent to the device, and the host work that widened it."""

    move: int
    copy: int
    elements: int
    widened: IntArray
    """Operators that made bytes float32, and those behind them that only work element by element."""
    is_proven: bool


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that sends images."""
    sent = {one.move: one for one in _sent(timeline)}
    for occurrences in by_site(timeline, (_occurrence(timeline, one) for one in sent.values())):
        found = [sent[occurrence.anchor] for occurrence in occurrences]
        copies = np.array(sorted(one.copy for one in found), dtype=np.int64)
        sizes = np.maximum(timeline.trace.size_bytes[copies], 0)
        work = np.sort(np.concatenate([one.widened for one in found]))
        yield Candidate(
            what="images are sent to the device as float32, four times the bytes they had",
            remedy="sending bytes and converting there",
            occurrences=occurrences,
            evidence=(
                Evidence("size", "sent per step", round(value_per_step(timeline, copies, sizes) / 1e6, 2), "MB"),
                Evidence(
                    "work",
                    "elementwise operators on the host before, per step",
                    count_per_step(timeline, work),
                    "",
                    events_of(timeline, in_typical_step(timeline, work)),
                ),
            ),
            probability=0.9 if all(one.is_proven for one in found) else 0.45,
        )


def _sent(timeline: Timeline) -> Iterator[_Sent]:
    trace = timeline.trace
    copies = host_to_device(timeline)
    copies = copies[timeline.launches.runtime[copies] != NONE]
    moves = np.array([outer_op(timeline, int(call)) for call in timeline.launches.runtime[copies]], dtype=np.int64)
    fits = is_among(moves, trace.rows_named(_MOVES)) if len(moves) else np.zeros(0, dtype=np.bool_)
    copies, moves = copies[fits], moves[fits]
    elements = np.array(of_each(trace, moves, _sent_elements), dtype=np.int64)
    is_large = elements >= _LEAST_ELEMENTS
    copies, moves, elements = copies[is_large], moves[is_large], elements[is_large]
    if not len(moves):
        return
    widening = _widening(timeline)
    before = 0
    for copy, move, count in sorted(zip(copies.tolist(), moves.tolist(), elements.tolist(), strict=True)):
        start = int(trace.ts_ns[move])
        own = widening[(trace.ts_ns[widening] >= before) & (trace.ts_ns[widening] < start)]
        made = sum(of_each(trace, own, _elements))
        is_proven = made >= _ENOUGH * count
        yield _Sent(move, copy, count, _host_work(timeline, own, move) if is_proven else own[:0], is_proven)
        before = start


def _sent_elements(inputs: OpInputs) -> int:
    """Elements of the float32 tensor that is moved, if it may be a batch of images; else 0."""
    source = 1 if inputs.dtype(1) == _FLOAT else 0
    return _elements(inputs, source) if inputs.dtype(source) == _FLOAT and len(inputs.shape(source)) >= 3 else 0


def _elements(inputs: OpInputs, argument: int = 0) -> int:
    return prod(inputs.shape(argument)) if inputs.shape(argument) else 0


def _widening(timeline: Timeline) -> IntArray:
    """Operators of the host that make bytes float32."""
    trace = timeline.trace
    rows = taking(trace, steady(timeline, trace.rows_named(_WIDENING)), _BYTE)
    widens = of_each(trace, rows, lambda inputs: inputs.dtype(0) == _FLOAT or inputs.dtype(1) != _BYTE)
    return rows[np.array(widens, dtype=np.bool_)]


def _host_work(timeline: Timeline, widening: IntArray, move: int) -> IntArray:
    """The widening operators on the thread of the move, as Python called them, and the elementwise ones up to it."""
    trace = timeline.trace
    own = widening[trace.thread[widening] == trace.thread[move]]
    if not len(own):
        return own
    tops = {outer_op(timeline, row) for row in own.tolist()}
    sizes = set(of_each(trace, own, _elements))
    later = steady(timeline, trace.rows_named(_POINTWISE))
    later = later[(trace.thread[later] == trace.thread[move]) & (trace.cat[later] == Category.CPU_OP)]
    later = later[(trace.ts_ns[later] > trace.ts_ns[own[0]]) & (trace.ts_ns[later] < trace.ts_ns[move])]
    fits = [size in sizes for size in of_each(trace, later, _elements)]
    tops |= {outer_op(timeline, row) for row, is_same in zip(later.tolist(), fits, strict=True) if is_same}
    return np.array(sorted(tops), dtype=np.int64)


def _occurrence(timeline: Timeline, one: _Sent) -> Occurrence:
    edit = Edit(scales=(Scale(np.array([one.copy]), _factor(timeline, one)),), removed_ops=one.widened)
    return Occurrence(one.move, edit, np.append(one.widened, one.copy))


def _factor(timeline: Timeline, one: _Sent) -> float:
    """Time of the copy of bytes and of the work on the device over the recorded time of the copy."""
    rate = timeline.device.memory_gb_per_s
    rate = (_DEFAULT_GB_PER_S if isnan(rate) else rate) * _MEMORY_SHARE
    kinds = len({timeline.trace.name_of(row) for row in one.widened.tolist()})
    moved_bytes = one.elements * (5 + 8 * max(kinds - 1, 0))  # the conversion, then reading and writing float32
    extra = moved_bytes / rate / max(int(timeline.trace.dur_ns[one.copy]), 1)
    return round(min(_NARROW + extra, 1.0), 3)


PATTERN = Pattern(
    code="TAP208",
    slug="wide-dtype-transfer",
    title="Images sent as float32",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches", "shapes"),
    group="transfers and synchronisation",
    stage=Stage.IMPLEMENTATION,
)
